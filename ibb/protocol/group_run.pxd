cimport cython

from .fast_checksum cimport crc32_at
from .little_endian cimport number_at

cdef Py_ssize_t _run_bytes_max, _groups_max, _events_bytes_max


cdef class GroupRun:
    cdef readonly Py_ssize_t count, used
    cdef readonly int seq
    cdef readonly unsigned long timestamp
    cdef readonly object data, bounds, seqs
    cdef readonly list origins
    cdef unsigned char[::1] _out
    cdef const unsigned char[::1] _kinds
    cdef long long[::1] _bounds
    cdef unsigned long long[::1] _seqs
    cdef unsigned long long _number
    cdef unsigned long _domain, _server
    cdef Py_ssize_t _limit, _room, _size
    cdef int _kind

    @cython.locals(domain="unsigned long", server="unsigned long", newest="unsigned long long",
                   number="unsigned long long", is_same=bint, at=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t take(self, const unsigned char[::1] packets, Py_ssize_t offset, int seq, int checksum, Py_ssize_t group_bytes_max) except -1

    @cython.locals(at=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t take_events(self, const unsigned char[::1] packets, Py_ssize_t offset, int seq, int checksum) except -1

    @cython.locals(start=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, seq=int)
    cdef Py_ssize_t _take_group(self, const unsigned char[::1] packets, Py_ssize_t offset, int checksum) except -1

    @cython.locals(data="const unsigned char[::1]", length=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, said=Py_ssize_t,
                   kind=int, out="unsigned char[::1]", used=Py_ssize_t)
    cdef Py_ssize_t _take_event(self, const unsigned char[::1] packets, Py_ssize_t offset, int checksum, Py_ssize_t start) except -1

    @cython.locals(end=Py_ssize_t, said="unsigned int")
    cdef bint _is_sound(self, const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t size) except -1

    @cython.locals(flags2=int, rest=Py_ssize_t, end=Py_ssize_t, extra=int)
    cdef bint _read_gtid(self, const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t size)

    @cython.locals(text=Py_ssize_t, letter=int)
    cdef bint _goes_on(self, const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t size)
