"""Finds the last staged record of each key with compiled kernels, in columns of the warehouse's types.

Threads of one machine do it for all files together (`last_records`), tasks of a cluster in three steps (`key_buckets`).
Both leave what kernels cannot read to Spark SQL.
"""
