"""Commands that errors name: they bring a source or its tables back to work."""
