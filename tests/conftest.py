"""What all tests share."""

import hypothesis
import pytest

from ibb import kernels

# A run repeats: examples come from the code alone; a deadline would fail on a busy machine.
hypothesis.settings.register_profile("ibb", deadline=None, print_blob=True)
hypothesis.settings.load_profile("ibb")


def pytest_report_header():
    """Say which side of the kernels is tested; an old compiled one would test what nobody reads."""
    if old := kernels.outdated():
        pytest.exit(f"{', '.join(old)}: compiled before the source changed: run scripts/compile", 2)
    return f"kernels: {kernels.side()}"
