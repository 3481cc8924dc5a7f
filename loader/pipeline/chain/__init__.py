"""Where the chain of intervals begins, ends and goes on: generations, positions, and the next interval."""
