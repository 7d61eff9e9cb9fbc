"""
Coverage-guided fuzzing of one target.

    python -m tests.fuzz.fuzz PROGRAM TARGET [libFuzzer options] [FOLDER]

PROGRAM is what starts this again with other options, as libFuzzer's merge does. An input that
raises or goes over a limit is a find: libFuzzer writes it to a file, and the exit status is not 0.
"""

import sys

import atheris

from tests.fuzz.watch import Watched

SLOW_ON_PURPOSE = ["ibb.protocol.sha256_crypt"]  # five thousand rounds that no input changes

with atheris.instrument_imports(include=["ibb"], exclude=SLOW_ON_PURPOSE):
    from tests.fuzz.targets import TARGETS


def main():
    """Run until libFuzzer's limits; it does not return."""
    program, target, *options = sys.argv[1:]
    atheris.Setup([program, *options], Watched(TARGETS[target].run))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
