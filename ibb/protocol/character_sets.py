"""Character sets and collations that clients may name. Ids are those of MariaDB 10.11."""

from __future__ import annotations

from typing import Final

LATIN1: Final = 8
UTF8MB3: Final = 33
UTF8MB4: Final = 45
BINARY: Final = 63

# Collation by character set: what SET NAMES takes where none is named.
DEFAULT_COLLATIONS: Final = {
    "ascii": "ascii_general_ci",
    "binary": "binary",
    "latin1": "latin1_swedish_ci",
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_general_ci",
}
COLLATIONS: Final = {
    "ascii_general_ci": 11,
    "ascii_bin": 65,
    "binary": BINARY,
    "latin1_swedish_ci": LATIN1,
    "latin1_german1_ci": 5,
    "latin1_german2_ci": 31,
    "latin1_general_ci": 48,
    "latin1_general_cs": 49,
    "latin1_bin": 47,
    "utf8mb3_general_ci": UTF8MB3,
    "utf8mb3_bin": 83,
    "utf8mb3_unicode_ci": 192,
    "utf8mb4_general_ci": UTF8MB4,
    "utf8mb4_bin": 46,
    "utf8mb4_unicode_ci": 224,
    "utf8mb4_unicode_520_ci": 246,
    "utf8mb4_nopad_bin": 1070,
    "utf8mb4_general_nopad_ci": 1069,
}
COLLATION_NAMES: Final = {number: name for name, number in COLLATIONS.items()}
DESCRIPTIONS: Final = {
    "ascii": ("US ASCII", 1),
    "binary": ("Binary pseudo charset", 1),
    "latin1": ("cp1252 West European", 1),
    "utf8mb3": ("UTF-8 Unicode", 3),
    "utf8mb4": ("UTF-8 Unicode", 4),
}


def charset_of(collation: str) -> str:
    """Return the character set that a known collation belongs to."""
    name = collation.partition("_")[0]
    return "utf8mb3" if name == "utf8" else name
