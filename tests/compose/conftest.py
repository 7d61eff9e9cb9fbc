"""The stack of docker-compose.yml; `scripts/test-compose` alone runs these tests."""

import os

import pytest

from .stack import Stack

collect_ignore_glob = [] if "IBB_ENGINE" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def stack():
    """Primary, relay and two replicas, up and at work; the script takes them down."""
    stack = Stack(os.environ["IBB_ENGINE"], os.environ["IBB_COMPOSE"].split())
    stack.choose_passwords()
    stack.compose("up", "-d")
    for service in ("primary", "relay", "replica1", "replica2", "prometheus"):
        stack.wait_until_healthy(service)
    return stack
