"""The dashboard: what a person sees of a running server in a browser."""
