cimport cython

from ibb.protocol.fast_checksum cimport crc32c_at
from ibb.protocol.little_endian cimport number_at

cdef Py_ssize_t _unit, _checksum_size, _chunk_header, _exponent_at, _major_at, _file_no_at, _byte
cdef unsigned long long _magic, _major_final, _exponent_min, _exponent_max
cdef int _whole_state

@cython.locals(view="const unsigned char[::1]", length=Py_ssize_t, exponent="unsigned long long", page_size=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _state_size(start, unsigned long long file_no) except -2

@cython.locals(end=Py_ssize_t, checksum="unsigned int")
cdef bint _is_sealed(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t size) noexcept
