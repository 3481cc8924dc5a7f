"""The last staged record of each key, found by compiled kernels on one machine, in columns of the warehouse's types.

What is out of the ordinary is left to Spark's SQL: see `loader.native_collapse.last_records.find`.
"""
