"""What the command line's tests share."""

import shutil

import pytest


@pytest.fixture(autouse=True)
def tidy(tmp_path):
    """Remove each test's stores at once: together they would fill a small disk."""
    yield
    shutil.rmtree(tmp_path)
