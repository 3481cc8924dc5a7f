"""Finds the last staged record of each key with compiled kernels on one machine, in columns of the warehouse's types.

Records that need more than that are left to Spark SQL: see `loader.native_collapse.last_records.LastRecords`.
"""
