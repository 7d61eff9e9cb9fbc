"""What all tests share."""

import hypothesis

# A run repeats: examples come from the code alone; a deadline would fail on a busy machine.
hypothesis.settings.register_profile("ibb", deadline=None, print_blob=True)
hypothesis.settings.load_profile("ibb")
