"""What statements do: variables, SHOW, administration, prepared statements, waits."""
