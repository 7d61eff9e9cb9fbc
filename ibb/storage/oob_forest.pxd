cimport cython

from ibb.protocol.compint cimport put


@cython.final
cdef class OobForest:
    cdef readonly long long count
    cdef int _roots
    cdef unsigned long long _first_file, _first_at
    cdef unsigned long long _file_of[66]
    cdef unsigned long long _root_at[66]
    cdef int _height[66]

    @cython.locals(forest=OobForest, place=int)
    cpdef OobForest copy(self)

    @cython.locals(last=int, left=int)
    cpdef Py_ssize_t put_head(self, unsigned char[::1] out, Py_ssize_t at) except -1

    @cython.locals(places="const long long[::1]", which=Py_ssize_t)
    cpdef add_run(self, unsigned long long file_no, starts, Py_ssize_t count)

    @cython.locals(roots=int, height=int)
    cpdef void add_at(self, unsigned long long file_no, unsigned long long offset) noexcept

    cdef _root(self, int place)

    @cython.locals(last=int)
    cdef bint _joins(self) noexcept


@cython.locals(one="long long")
cdef long long _nodes(int height) noexcept
