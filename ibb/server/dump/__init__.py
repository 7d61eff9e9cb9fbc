"""Dumps: what readers are sent, how fast, and what is kept for them."""
