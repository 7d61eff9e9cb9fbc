"""The wire and the event formats: bytes to meaning and back, without any I/O."""
