"""The DAGs of a source. `source_dags` makes all of them; each other module makes one, and its docstring is its page."""
