"""XA transactions, whose rows and outcome are logged separately."""
