"""Plans merges from staged documents alone. Pure: imports neither pyspark nor a database driver."""
