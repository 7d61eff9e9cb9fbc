"""
JSON text that knows its own checksum, for small files that people can read and mend.

A bit that flips in a number or a name leaves JSON that is as good as before. Text without a
checksum is taken as it is: people leave the line out where they change something.
"""

import json
from typing import Any

from ibb.protocol.checksum import crc32c

CHECKSUM_KEY = "crc32c"


def encode_checked(content: dict[str, Any], *, indent: int) -> bytes:
    """
    Return text that says *content*, and its checksum.

    Args:
        content: of strings, numbers, lists and dictionaries.
        indent: spaces in front of what lies inside something.
    """
    return json.dumps({**content, CHECKSUM_KEY: _checksum(content)}, indent=indent).encode()


def parse_checked(text: bytes) -> Any:
    """
    Return what text says, without its checksum.

    Raises:
        ValueError, RecursionError: it is no JSON, or not what the checksum was made of.
    """
    content: Any = json.loads(text)
    if isinstance(content, dict):
        checksum = content.pop(CHECKSUM_KEY, None)
        if checksum is not None and checksum != _checksum(content):
            raise ValueError(
                f"what it says has another checksum (leave '{CHECKSUM_KEY}' out of it where "
                "something is changed by hand)"
            )
    return content


def _checksum(content: dict[str, Any]) -> str:
    return f"{crc32c(json.dumps(content, sort_keys=True).encode()):08x}"
