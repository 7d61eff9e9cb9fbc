"""The .ibb storage engine: pages, records, redo log, recovery, readers."""
