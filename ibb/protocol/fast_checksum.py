"""
Both checksums for kernels, which call them without the interpreter: a kernel itself.

Whoever has ISA-L's wheel (extra `fast`) gets its functions: the extension module exports them, and
what ctypes finds there is tried before it is believed. CRC-32 of little, as of a small event, is
made here where the processor can multiply without carries; so is that of much without ISA-L. Else
tables do it, eight bytes at a time and a tenth as fast. `crc32_at`, `crc32_behind` and `crc32c_at`
are for other compiled kernels only; `fast_checksum.pxd` has their types, and the multiplication.
Plain Python has `checksum.py`.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from . import checksum

if TYPE_CHECKING:
    from collections.abc import Callable

_EXPORTER: Final = "isal.isal_zlib"
# ISA-L takes the widest registers and leaves their upper halves full: what other code does with the
# lower ones then waits for both, and a one-row event took twice as long. `leave_wide` clears them.
_NAMES: Final = "crc32_gzip_refl", "crc32_iscsi"
_TRIED: Final = bytes(range(251)) * 5
_SIZES: Final = (0, 1, 7, 8, 15, 16, 17, 31, 64, 65, 127, 128, 255, 256, 511, 1024, len(_TRIED))
_FOLD_MAX: Final = 512  # bytes, from which on ISA-L's functions are as fast or faster
_CRC32_POLYNOMIAL: Final = 0xEDB88320
_CRC32C_POLYNOMIAL: Final = 0x82F63B78


class IsaL(NamedTuple):
    """Functions of ISA-L."""

    crc32: Any
    crc32c: Any


def crc32(data: bytes) -> int:
    """Return the CRC-32 (IEEE 802.3) of *data*, as kernels have it."""
    if cython.compiled:
        return crc32_at(data, len(data))
    return checksum.crc32(data)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of *data*, as kernels have it."""
    if cython.compiled:
        return crc32c_at(data, len(data), 0)
    return checksum.crc32c(data)


def uses_isa_l() -> bool:
    """Tell whether ISA-L does it."""
    return _isa_l is not None


def use_tables() -> None:
    """Do without ISA-L, and what a processor has for checksums, from now on."""
    global _isa_l, _fold_max  # noqa: PLW0603 - C's view of them is the module's, too
    _isa_l = None
    _fold_max = 0
    _adopt(0, 0)


def crc32_at(data: bytes, size: int) -> int:
    """Return the CRC-32 of *size* bytes at an address."""
    ones = 0
    ones = ~ones
    if _fold_min <= size <= _fold_max:
        return folded(data, size)  # noqa: F821
    if _has_functions:
        crc = _isa_crc32(0, data, size)
        leave_wide(_has_wide)  # noqa: F821
        return crc
    return _by_table(cython.address(_tables[0]), data, size, ones) ^ ones


def crc32_behind(first: int, second: int, third: int, data: bytes, size: int) -> int:
    """
    Return the CRC-32 of 19 bytes, and of *size* more at an address.

    Who has just changed the 19 has them here at once: memory would give them back in larger pieces
    than they were written in only once they have left the processor.

    Args:
        first: the first eight, the lowest byte first.
        second: the next eight.
        third: the last three.
        data: the address.
        size: bytes there.
    """
    tables, ones = cython.address(_tables[0]), 0
    ones = ~ones
    if _fold_min <= size <= _fold_max:
        return folded_behind(first, second, third, data, size)  # noqa: F821
    crc = _eight(tables, _eight(tables, first ^ ones) ^ second)
    for _ in range(3):
        crc = crc >> 8 ^ tables[(crc ^ third) & 255]
        third >>= 8
    if _has_functions:
        crc = _isa_crc32(crc ^ ones, data, size)
        leave_wide(_has_wide)  # noqa: F821
        return crc
    return _by_table(tables, data, size, crc) ^ ones


def _eight(tables: memoryview, word: int) -> int:
    """Return a CRC behind eight bytes, to which that of before has been added."""
    return (
        tables[1792 + (word & 255)]
        ^ tables[1536 + (word >> 8 & 255)]
        ^ tables[1280 + (word >> 16 & 255)]
        ^ tables[1024 + (word >> 24 & 255)]
        ^ tables[768 + (word >> 32 & 255)]
        ^ tables[512 + (word >> 40 & 255)]
        ^ tables[256 + (word >> 48 & 255)]
        ^ tables[word >> 56]
    )


def crc32c_at(data: bytes, size: int, before: int) -> int:
    """
    Return the CRC-32C of *size* bytes, less than 2 GiB, at an address.

    Args:
        data: the address.
        size: bytes there.
        before: the CRC-32C of what comes before them; 0: nothing.
    """
    ones = 0
    ones = ~ones
    if _has_functions:
        crc = _isa_crc32c(data, size, before ^ ones) ^ ones
        leave_wide(_has_wide)  # noqa: F821
        return crc
    return _by_table(cython.address(_tables[2048]), data, size, before ^ ones) ^ ones


def _by_table(tables: memoryview, data: bytes, size: int, crc: int) -> int:
    """Go on with a CRC by a polynomial's eight tables; it is not inverted."""
    at = 0
    while size - at >= 8:
        low = data[at + 3]
        low = low << 8 | data[at + 2]
        low = low << 8 | data[at + 1]
        crc ^= low << 8 | data[at]
        crc = (
            tables[1792 + (crc & 255)]
            ^ tables[1536 + (crc >> 8 & 255)]
            ^ tables[1280 + (crc >> 16 & 255)]
            ^ tables[1024 + (crc >> 24)]
            ^ tables[768 + data[at + 4]]
            ^ tables[512 + data[at + 5]]
            ^ tables[256 + data[at + 6]]
            ^ tables[data[at + 7]]
        )
        at += 8
    while at < size:
        crc = crc >> 8 ^ tables[(crc ^ data[at]) & 255]
        at += 1
    return crc


def _fill_table(table: int, polynomial: int) -> None:
    """Fill the eight tables of a polynomial, which begin at the one numbered *table*."""
    base = table * 256
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        _tables[base + byte] = crc
    for place in range(256, 2048):
        before = _tables[base + place - 256]
        _tables[base + place] = before >> 8 ^ _tables[base + (before & 255)]


def _adopt(crc32_address: int, crc32c_address: int) -> None:
    """Use the functions at two addresses from now on; 0: none."""
    global _has_functions, _isa_crc32, _isa_crc32c  # noqa: PLW0603 - C's globals
    _has_functions = crc32_address != 0 and crc32c_address != 0
    if cython.compiled:
        _isa_crc32 = cython.cast(IsaCrc32, cython.cast(cython.size_t, crc32_address))  # noqa: F821
        _isa_crc32c = cython.cast(IsaCrc32c, cython.cast(cython.size_t, crc32c_address))  # noqa: F821


def find_isa_l() -> IsaL | None:
    """Return functions of ISA-L that do what they should, or None."""
    try:
        library = ctypes.CDLL(import_module(_EXPORTER).__file__)
    except (ImportError, OSError):
        return None
    crc32_name, crc32c_name = _NAMES
    if not (hasattr(library, crc32_name) and hasattr(library, crc32c_name)):
        return None
    found = IsaL(getattr(library, crc32_name), getattr(library, crc32c_name))
    return found if _are_right(found) else None


def folds() -> bool:
    """Tell whether the processor can multiply without carries, and has SSE 4.2."""
    return bool(cython.compiled and has_folding())  # noqa: F821


def clears() -> bool:
    """Tell whether the processor has registers that ISA-L leaves full, and they are cleared."""
    return bool(cython.compiled and has_wide())  # noqa: F821


def _are_right(isa_l: IsaL) -> bool:
    gzip, iscsi = isa_l
    gzip.restype = iscsi.restype = ctypes.c_uint32
    gzip.argtypes = (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64)
    iscsi.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32)
    tried: tuple[tuple[Callable[[bytes], int], Callable[[bytes], int]], ...] = (
        (lambda data: gzip(0, data, len(data)), checksum.crc32),
        (lambda data: iscsi(data, len(data), 2**32 - 1) ^ (2**32 - 1), checksum.crc32c),
    )
    return all(
        found(_TRIED[:size]) == known(_TRIED[:size]) for found, known in tried for size in _SIZES
    )


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


if not cython.compiled:
    _tables = [0] * 4096
_fill_table(0, _CRC32_POLYNOMIAL)
_fill_table(8, _CRC32C_POLYNOMIAL)
_isa_l = find_isa_l() if cython.compiled else None
_has_wide = clears()
_fold_min, _fold_max = 16, 0  # bytes
if folds():
    _fold_max = sys.maxsize if _isa_l is None else _FOLD_MAX
if _isa_l is None:
    _adopt(0, 0)
else:
    _adopt(_address(_isa_l.crc32), _address(_isa_l.crc32c))
