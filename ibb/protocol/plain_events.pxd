cimport cython

cdef const unsigned char[::1] _plain
cdef long long _header_size

cpdef long long count_plain(const unsigned char[::1] events) except -1

cpdef long long count_others(const unsigned char[::1] events) except -1

@cython.locals(data="unsigned char[::1]", at="long long", size="long long")
cpdef clear_positions(unsigned char[::1] events, long long start)

@cython.locals(length="long long")
cdef long long _length(const unsigned char[::1] data, long long at) noexcept

@cython.locals(at="long long", size="long long", length="long long")
cdef long long _count(const unsigned char[::1] data, unsigned char is_plain) noexcept
