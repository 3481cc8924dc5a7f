"""Events and staged records as text and JSON lines."""
