"""Connections: sockets, TLS, packets, limits."""
