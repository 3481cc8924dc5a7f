"""Compiles kernels to native code. Holds the building blocks that kernels share."""
