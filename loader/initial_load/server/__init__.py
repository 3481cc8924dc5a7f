"""What an initial load asks of the server: consistent reads, limits of readers, and waiting for it."""
