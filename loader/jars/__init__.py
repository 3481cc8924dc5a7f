"""The jars of Spark jobs: which there are for what, and a folder with exactly those."""
