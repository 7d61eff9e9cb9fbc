"""What a call that wrote less than it was given has left to write."""


def unwritten(
    buffers: list[bytes | bytearray | memoryview], written: int
) -> list[bytes | bytearray | memoryview]:
    """Return what is left of *buffers* after their first *written* bytes."""
    for index, buffer in enumerate(buffers):
        view = memoryview(buffer)
        if written < view.nbytes:
            return [view.cast("B")[written:], *buffers[index + 1 :]]
        written -= view.nbytes
    return []
