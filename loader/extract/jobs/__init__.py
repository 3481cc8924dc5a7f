"""The Spark jobs of the extraction."""
