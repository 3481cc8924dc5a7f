"""Global transaction ids of an interval, and the transactions that it skips."""
