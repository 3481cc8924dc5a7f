"""The tasks of a delta, and what several operators do: planning, restored files, values of templates."""
