"""What statements of the binlog do to the shape of tables."""
