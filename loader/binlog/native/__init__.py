"""Compiling kernels to native code, and the building blocks that kernels share."""
