"""Where a log is: a URI, a server, or the files that a my.cnf names."""
