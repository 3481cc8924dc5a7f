"""An initial load in one Spark application: tables are loaded while other tables are still read."""
