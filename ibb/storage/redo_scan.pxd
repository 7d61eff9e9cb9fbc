cimport cython
from libc.string cimport memchr

cdef Py_ssize_t _lsn_at, _synced_at, _head_bytes
cdef int _first_byte
cdef unsigned long long _magic

@cython.locals(view="const unsigned char[::1]", at=Py_ssize_t, end=Py_ssize_t, found="const void*", is_due=bint)
cpdef Py_ssize_t find_due(data, Py_ssize_t first, unsigned long long lsn, unsigned long long synced) except -2

@cython.locals(value="unsigned long long", place=Py_ssize_t, byte="unsigned char")
cdef unsigned long long _number(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t size) noexcept
