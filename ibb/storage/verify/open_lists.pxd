cimport cython

from ibb.storage.verify.event_lengths cimport EventLengths

cdef int _lists_max, _roots_max
cdef long long _no_link


@cython.final
cdef class OpenLists:
    cdef readonly EventLengths events
    cdef long long _clock
    cdef long long _count[8]
    cdef long long _first[8]
    cdef long long _last[8]
    cdef long long _moved[8]
    cdef int _roots[8]
    cdef long long _root_at[512]
    cdef int _height[512]

    @cython.locals(which=int)
    cdef void forget_all(self) noexcept nogil

    cdef void forget(self, int which) noexcept nogil

    @cython.locals(which=int, top=int, before="long long")
    cdef int find(self, long long index, long long left, long long right) noexcept nogil

    @cython.locals(roots=int, height=int, base=int)
    cdef void add(self, int which, long long begin) noexcept nogil

    @cython.locals(which=int, is_right=bint)
    cdef bint close(self, long long count, long long first, long long last) noexcept nogil

    @cython.locals(which=int, oldest=int)
    cdef int _begin(self) noexcept nogil

    @cython.locals(roots=int, top=int)
    cdef bint _joins(self, int which) noexcept nogil
