cimport cython

cdef int _held_bytes, _gtid, _gtid_size_min, _gtid_size_max, _shift_max


@cython.final
cdef class RecordHead:
    cdef unsigned char _held[512]
    cdef long long numbers[10]
    cdef long long size, domain, server
    cdef unsigned long long number

    @cython.locals(place=Py_ssize_t)
    cdef long long hold(self, const unsigned char* data, long long at, long long end, long long wanted) noexcept nogil

    @cython.locals(which=int, value="long long", byte="long long", more=int, place=int)
    cdef long long read_numbers(self, long long at, int first, int count) noexcept nogil

    @cython.locals(length="long long")
    cdef long long read_gtid(self, long long at) noexcept nogil

    @cython.locals(value="unsigned long long", place="long long")
    cdef unsigned long long _read(self, long long at, int size) noexcept nogil
