"""The demonstration: a primary, `ibb serve` between, a replica, and a check that both are equal."""
