"""Brings MySQL and MariaDB tables into Apache Iceberg from the server's binary log."""

__version__ = "0.1.0"
