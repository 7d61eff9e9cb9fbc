"""The ibb command line, one command a file."""
