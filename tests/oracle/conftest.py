"""The sample binlogs, as the storage tests unpack them."""

from ..storage.conftest import sample  # noqa: F401 (a fixture)
