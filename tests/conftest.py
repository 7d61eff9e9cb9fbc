"""What all tests share."""

import gc

import hypothesis

from ibb import kernels

# A run repeats: examples come from the code alone; a deadline would fail on a busy machine.
hypothesis.settings.register_profile("ibb", deadline=None, print_blob=True)
hypothesis.settings.load_profile("ibb")


def pytest_report_header():
    """Say which side of the kernels is tested; where only a part is compiled, nothing is."""
    return f"kernels: {kernels.side()}"


def pytest_collection_finish():
    """Look for garbage among what tests make, not each time among all tests there are as well."""
    gc.collect()
    gc.freeze()
