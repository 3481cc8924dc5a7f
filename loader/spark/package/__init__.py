"""The archive that brings Python and the loader to the executors of a cluster."""
