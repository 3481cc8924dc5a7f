"""What the status pages show, read from the staged documents and the server."""
