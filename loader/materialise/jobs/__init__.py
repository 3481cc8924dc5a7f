"""The Spark jobs of the materialisation."""
