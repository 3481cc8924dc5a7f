"""Encrypted events and log files."""
