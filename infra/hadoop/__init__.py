"""Jars and configuration of Hadoop's daemons."""
