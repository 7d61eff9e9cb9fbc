cimport cython
from libc.string cimport memcpy

cdef Py_ssize_t _plain_offset


cdef class RowStage:
    cdef readonly Py_ssize_t width, rows, used, rows_max, next_event
    cdef readonly bint has_before, has_after, is_partial
    cdef readonly object data, before, after, ops, tags, numbers
    cdef unsigned char[::1] _bytes, _masks
    cdef int[::1] _skips, _counts, _before, _after, _numbers
    cdef signed char[::1] _ops
    cdef long long[::1] _tags
    cdef Py_ssize_t _begin, _end, _base, _capacity, _expected
    cdef int _op, _number
    cdef object _make_room
    cdef long long _tag

    cpdef Py_ssize_t add(self, event, Py_ssize_t offset, int op, long long tag) except -1

    @cython.locals(view="const unsigned char[::1]", size=Py_ssize_t, count=Py_ssize_t, at=Py_ssize_t,
                   starts="const long long[::1]", ends="const long long[::1]",
                   ops="const long long[::1]", start=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t add_plain(self, data, tuple events, Py_ssize_t first, long long tag,
                               Py_ssize_t bytes_max) except -1

    @cython.locals(size=Py_ssize_t, start=Py_ssize_t, rows=Py_ssize_t, to="unsigned char*",
                   source="const unsigned char*")
    cdef Py_ssize_t _add(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t offset,
                         Py_ssize_t end, int op, long long tag) except -1

    cpdef clear(self)

    @cython.locals(data="unsigned char[::1]", end=Py_ssize_t, first=int, extra=int, columns=Py_ssize_t,
                   size=Py_ssize_t, image=Py_ssize_t, count=int, column=Py_ssize_t, bit=int)
    cdef _read_head(self, Py_ssize_t at)

    @cython.locals(before=bint, after=bint, first=Py_ssize_t)
    cpdef Py_ssize_t read_rows(self) except -1

    @cython.locals(row=Py_ssize_t)
    cdef _read_rows(self, bint before, bint after)

    @cython.locals(data="unsigned char[::1]", places="int[::1]", masks="unsigned char[::1]",
                   skips="int[::1]", end=Py_ssize_t, width=Py_ssize_t, at=Py_ssize_t,
                   nulls=Py_ssize_t, index=Py_ssize_t, base=Py_ssize_t, mask=Py_ssize_t,
                   column=Py_ssize_t, is_null=int, skip=Py_ssize_t, high=Py_ssize_t, prefix=int)
    cdef Py_ssize_t _read_image(self, int image, Py_ssize_t row) except -1

    @cython.locals(row=Py_ssize_t)
    cdef _fill_absent(self, int image, Py_ssize_t rows)

    @cython.locals(places="int[::1]", index=Py_ssize_t)
    cdef _fill_absent_row(self, int image, Py_ssize_t row)

    cdef _grow_data(self, Py_ssize_t size)
    cdef _grow_rows(self, Py_ssize_t rows)
    cdef Py_ssize_t _at(self, Py_ssize_t at)
