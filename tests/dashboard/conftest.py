"""What tests of the dashboard share."""

import pytest

from .board import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found
