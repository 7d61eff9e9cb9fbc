"""Change tables: a source's tables as they are now, kept up to date in a lakehouse."""
