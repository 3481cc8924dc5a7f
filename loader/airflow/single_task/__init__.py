"""Operators for DAG files of users: each does a whole use case of the loader in one task."""
