"""Airflow tasks and operators of the loader. No other package imports airflow.

DAG files import only light modules from here. Spark, drivers and the codec are imported when a task runs.
"""
