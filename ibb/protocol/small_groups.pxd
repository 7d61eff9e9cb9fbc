cimport cython
from libc.string cimport memcmp

cdef const unsigned char[::1] _kind_of, _op_of
cdef Py_ssize_t _header_size
cdef int _begin, _map, _end, _events_max, _maps_max, _tables_max
cdef int _has_commit_id, _has_xid, _has_engines, _has_alter_seq, _has_thread_id


@cython.final
cdef class RowsFinder:
    cdef readonly int count
    cdef readonly bint is_full
    cdef readonly list maps
    cdef readonly object groups, positions, tables, starts, ends, ops, threads
    cdef long long[::1] _of_group, _position, _table, _start, _stop, _op, _thread
    cdef int _tables, _maps, _last
    cdef long long _map_number[16]
    cdef int _map_table[16]
    cdef Py_ssize_t _map_start[64]
    cdef Py_ssize_t _map_end[64]
    cdef Py_ssize_t _map_group[64]

    @cython.locals(at=Py_ssize_t, place=int)
    cpdef Py_ssize_t look(self, data, starts, ends, Py_ssize_t first, Py_ssize_t stop) except -1

    @cython.locals(view="const unsigned char[::1]", size=Py_ssize_t, group=Py_ssize_t, count=int, tables=int, start=Py_ssize_t, end=Py_ssize_t)
    cdef Py_ssize_t _look(self, data, const long long[::1] starts, const long long[::1] ends, Py_ssize_t first, Py_ssize_t stop) except -1

    @cython.locals(at=Py_ssize_t, position=Py_ssize_t, thread="long long", length=Py_ssize_t, kind=int)
    cdef bint _find(self, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end, Py_ssize_t group) noexcept

    @cython.locals(place=int, tables=int)
    cdef bint _add_map(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t length, Py_ssize_t group) noexcept

    @cython.locals(start=Py_ssize_t, rest=Py_ssize_t, one="const unsigned char*", other="const unsigned char*")
    cdef bint _is_same(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t length, int place) noexcept

    @cython.locals(number="long long", place=int, count=int)
    cdef bint _add_rows(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t length, long long thread, Py_ssize_t group, Py_ssize_t position) noexcept


@cython.locals(place=Py_ssize_t, end=Py_ssize_t, flags=int)
cdef long long _thread_of(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t length) noexcept

@cython.locals(top="unsigned int")
cdef unsigned int _u32(const unsigned char[::1] view, Py_ssize_t at) noexcept

@cython.locals(high="long long")
cdef long long _u48(const unsigned char[::1] view, Py_ssize_t at) noexcept
