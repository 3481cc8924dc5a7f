"""What Airflow shows of a run: errors, notes, links, asset events, metrics, and the output of Spark."""
