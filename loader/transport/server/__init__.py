"""Connections to a server."""
