"""Row changes: table maps, rows events, and their values as columns."""
