"""Who may log in, and as whom: accounts, password methods, privileges."""
