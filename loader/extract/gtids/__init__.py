"""GTIDs of an interval, and the transactions that it skips."""
