"""The numbers in stored bytes, taken one after the other. Source: ibb-format 2."""

CI_VALUE_MAX = 2**64 - 1


class DamageError(Exception):
    """Bytes that no writer writes."""


class Fields:
    """Takes fields from the front of *data*."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise DamageError(f"{size} bytes wanted, {len(taken)} left")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def ci(self) -> int:
        """Take a compressed integer."""
        first = self.take(1)
        tag = first[0] & 7
        value = int.from_bytes(first + self.take(8 if tag == 7 else tag), "little") >> 3
        if value > CI_VALUE_MAX:
            raise DamageError("compressed integer above 64 bits")
        return value

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


def ci_size(value: int) -> int:
    """Return the bytes of the shortest form of *value*; none has 8."""
    size = -(-(max(1, value.bit_length()) + 3) // 8)
    return 9 if size == 8 else size
