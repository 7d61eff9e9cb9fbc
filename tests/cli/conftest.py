"""What tests of the command line share: servers that end with their test."""

from contextlib import ExitStack

import pytest

from .process import Process


@pytest.fixture
def serve():
    """Return what starts an `ibb serve`; one that a failed test left is killed."""
    with ExitStack() as ends:

        def start(*arguments):
            process = Process(*arguments)
            ends.callback(process.kill)
            return process

        yield start
