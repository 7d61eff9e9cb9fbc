"""What the data source tells its users: which option is wrong, and what to do."""

from ibb.protocol.errors import IbbError


class OptionError(IbbError):
    """
    An option cannot be used as it is.

    Args:
        name: of the option, as documented.
        text: what is wrong with it.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"option {name}: {text}")
        self.name = name

    def __reduce__(self) -> tuple[type["OptionError"], tuple[str, str]]:
        return OptionError, (self.name, str(self).partition(": ")[2])


class LeaseFailed(IbbError):  # noqa: N818 - a state of the world
    """A stream's lease could not be made or moved: a purge may not wait for it."""


class DataLossError(IbbError):
    """Groups that a position needs are gone, or are not those that it was made from."""


class ServerRefused(IbbError):  # noqa: N818 - a state of the world
    """A server that was to be read is not there, not trusted, or not one that can be read."""
