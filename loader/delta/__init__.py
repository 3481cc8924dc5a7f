"""A whole delta as one Spark application: extraction of planned intervals, then materialisation."""
