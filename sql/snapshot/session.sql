-- No setting of the server may cut a result short or let rows in that were never committed.
-- Text comes in the character set of its column: the server would make `?` of what it cannot convert.
SET SESSION sql_select_limit = 18446744073709551615, sql_big_selects = 1, net_write_timeout = 3600,
            character_set_results = NULL;
