"""Planning a merge, from documents alone. Pure: imports neither pyspark nor a driver."""
