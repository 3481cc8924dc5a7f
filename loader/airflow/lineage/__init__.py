"""Lineage of the warehouse tables for OpenLineage. Airflow's provider calls it, if it is installed and configured."""
