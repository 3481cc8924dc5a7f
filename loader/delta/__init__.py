"""A whole delta as one Spark application: extract what is planned, then materialise it."""
