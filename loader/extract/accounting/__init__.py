"""The proof that an interval staged everything in its bytes of log."""
