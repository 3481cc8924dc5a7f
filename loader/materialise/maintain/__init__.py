"""Compaction, snapshot expiry and removal of orphaned files."""
