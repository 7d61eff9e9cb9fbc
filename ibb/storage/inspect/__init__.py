"""What is in a directory, damaged or not, as a person reads it: `ibb inspect`, `ibb groups`."""
