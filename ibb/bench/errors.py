"""What can go wrong in a measurement."""

from ibb.protocol.errors import IbbError


class BenchError(IbbError):
    """A measurement could not be made, or its result cannot be trusted; the text says why."""
