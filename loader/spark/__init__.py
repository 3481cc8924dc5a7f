"""Spark jobs: submitting them, and what every job does around its own work."""
