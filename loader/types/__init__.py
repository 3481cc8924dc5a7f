"""Column types of MySQL and MariaDB: one record per type, from which all packages look up what they need."""
