"""Sizes as people write them."""

import argparse
import re

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """
    Return the bytes that a number with an optional K, M or G stands for.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number with an optional K, M or G")
    return int(match[1]) * UNITS[match[2]]
