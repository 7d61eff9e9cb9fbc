"""
Both checksums for kernels, which call them without the interpreter: a kernel itself.

Whoever has ISA-L's wheel (extra `fast`) gets its functions: the extension module exports them, and
what ctypes finds there is tried before it is believed. Else tables do it, eight bytes at a time and
a tenth as fast. `crc32_at` and `crc32c_at` are for other compiled kernels only; `fast_checksum.pxd`
has their types. Plain Python has `checksum.py`.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from . import checksum

if TYPE_CHECKING:
    from collections.abc import Callable

_EXPORTER: Final = "isal.isal_zlib"
_TRIED: Final = bytes(range(251)) * 5
_SIZES: Final = (0, 1, 7, 8, 15, 16, 17, 31, 64, 65, 127, 128, 255, 256, 511, 1024, len(_TRIED))
_CRC32_POLYNOMIAL: Final = 0xEDB88320
_CRC32C_POLYNOMIAL: Final = 0x82F63B78


def crc32(data: bytes) -> int:
    """Return the CRC-32 (IEEE 802.3) of *data*, as kernels have it."""
    if cython.compiled:
        return crc32_at(data, len(data))
    return checksum.crc32(data)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of *data*, as kernels have it."""
    if cython.compiled:
        return crc32c_at(data, len(data))
    return checksum.crc32c(data)


def uses_isa_l() -> bool:
    """Tell whether ISA-L does it."""
    return _library is not None


def use_tables() -> None:
    """Do without ISA-L from now on."""
    global _library  # noqa: PLW0603 - C's view of it is the module's, too
    _library = None
    _adopt(0, 0)


def crc32_at(data: bytes, size: int) -> int:
    """Return the CRC-32 of *size* bytes at an address."""
    ones = 0
    ones = ~ones
    if _has_functions:
        return _isa_crc32(0, data, size)
    return _by_table(cython.address(_tables[0]), data, size) ^ ones


def crc32c_at(data: bytes, size: int) -> int:
    """Return the CRC-32C of *size* bytes, less than 2 GiB, at an address."""
    ones = 0
    ones = ~ones
    if _has_functions:
        return _isa_crc32c(data, size, ones) ^ ones
    return _by_table(cython.address(_tables[2048]), data, size) ^ ones


def _by_table(tables: memoryview, data: bytes, size: int) -> int:
    """Return a CRC by a polynomial's eight tables, not inverted at the end."""
    crc = 0
    crc = ~crc
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


def _find_isa_l() -> ctypes.CDLL | None:
    """Return the library whose functions do what they should, or None."""
    try:
        library = ctypes.CDLL(import_module(_EXPORTER).__file__)
        gzip, iscsi = library.crc32_gzip_refl, library.crc32_iscsi
    except (ImportError, OSError, AttributeError):
        return None
    gzip.restype = iscsi.restype = ctypes.c_uint32
    gzip.argtypes = (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64)
    iscsi.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32)
    tried: tuple[tuple[Callable[[bytes], int], Callable[[bytes], int]], ...] = (
        (lambda data: gzip(0, data, len(data)), checksum.crc32),
        (lambda data: iscsi(data, len(data), 2**32 - 1) ^ (2**32 - 1), checksum.crc32c),
    )
    right = all(
        found(_TRIED[:size]) == known(_TRIED[:size]) for found, known in tried for size in _SIZES
    )
    return library if right else None


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


if not cython.compiled:
    _tables = [0] * 4096
_fill_table(0, _CRC32_POLYNOMIAL)
_fill_table(8, _CRC32C_POLYNOMIAL)
_library = _find_isa_l() if cython.compiled else None
if _library is None:
    _adopt(0, 0)
else:
    _adopt(_address(_library.crc32_gzip_refl), _address(_library.crc32_iscsi))
