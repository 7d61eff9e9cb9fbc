cimport cython
from libc.string cimport memchr

from ibb.protocol.little_endian cimport number_at

cdef Py_ssize_t _lsn_at, _synced_at, _head_bytes
cdef int _first_byte
cdef unsigned long long _magic

@cython.locals(view="const unsigned char[::1]", at=Py_ssize_t, end=Py_ssize_t, found="const void*", is_due=bint)
cpdef Py_ssize_t find_due(data, Py_ssize_t first, unsigned long long lsn, unsigned long long synced) except -2
