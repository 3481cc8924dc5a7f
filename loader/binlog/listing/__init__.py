"""Kernels that write listings: staged lines and events of a block, as text or as lines of JSON."""
