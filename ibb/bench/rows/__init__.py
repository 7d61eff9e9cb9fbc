"""The rows of the suite, a family a module."""
