-- Each row has a hash of 60 bits. Rows of one bucket are summed, so that duplicates count.
SELECT hash % {buckets} AS bucket, COUNT(*) AS amount, SUM(hash) AS total
FROM (SELECT {hash} AS hash FROM {table} WHERE {sampled}) hashed
GROUP BY bucket
