"""The relay: following a primary and storing what it sends."""
