"""The status pages: reports of sources as HTML, for `loader ui` and for the plugin of Airflow."""
