"""The bounds of the chunks of a table: its key is walked, or divided by the server's estimates."""
