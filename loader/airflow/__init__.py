"""The loader as Airflow tasks: the only package that imports airflow.

What a DAG file imports from here is light; Spark, drivers and the codec are imported when a task runs.
"""
