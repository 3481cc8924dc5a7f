"""Commands that set the loader up and explain it: no command here reads a log or changes a table."""
