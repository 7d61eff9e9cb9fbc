cimport cython

cdef int _header_size, _gtid


@cython.final
cdef class EventLengths:
    cdef long long _left[9]
    cdef int _held[9]
    cdef unsigned char _heads[171]

    cdef void begin(self, int walk, long long left) noexcept nogil

    @cython.locals(left="long long", length="long long")
    cdef bint feed(self, int walk, const unsigned char* data, long long at, long long end) noexcept nogil

    cdef bint is_done(self, int walk) noexcept nogil

    @cython.locals(base=int, known=int, length="long long", place=int)
    cdef long long _join(self, int walk, const unsigned char* data, long long at, long long end) noexcept nogil


@cython.locals(value="unsigned int")
cdef unsigned int _u32(const unsigned char* data, long long at) noexcept nogil
