cimport cython

cdef int _items_max, _nested_max, _looked_back
cdef long long _states_bytes


@cython.final
cdef class FoundItems:
    cdef int _count, _nested
    cdef long long _used
    cdef unsigned char[::1] _states
    cdef long long _domain[512]
    cdef long long _server[512]
    cdef unsigned long long _first[512]
    cdef unsigned long long _last[512]
    cdef long long _groups[512]
    cdef long long _offset[512]
    cdef long long _nested_offset[16]
    cdef long long _nested_start[16]
    cdef long long _nested_size[16]

    cdef bint is_full(self) noexcept nogil
    cdef bint has_room(self, long long size) noexcept nogil
    cdef void add_state(self, const unsigned char* data, long long at, long long size, long long offset) noexcept nogil

    @cython.locals(nested=int, used="long long", place="long long")
    cdef void add_nested(self, const unsigned char* data, long long at, long long size, long long offset) noexcept nogil

    @cython.locals(item=int, oldest=int, is_behind=bint)
    cdef void end_group(self, long long domain, long long server, unsigned long long number, long long offset) noexcept nogil

    cdef void give_up(self) noexcept nogil

    @cython.locals(item=int, first="unsigned long long", last="unsigned long long", groups="long long", offset="long long")
    cpdef list take(self)

    @cython.locals(nested=int, item=int)
    cdef void add_states(self) noexcept nogil
