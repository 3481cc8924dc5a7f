"""What several operators and tasks do: planning, the stages of a delta, restored files, values of templates."""
