"""The Spark jobs of materialisation."""
