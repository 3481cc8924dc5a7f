"""The files of a log, by folder, index, address or server."""
