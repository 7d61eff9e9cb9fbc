"""Jobs that need a cluster: checks, figures and searches over a whole history."""
