cimport cython
from libc.string cimport memcpy

@cython.locals(source="const unsigned char[::1]", target="unsigned char[::1]", size=Py_ssize_t)
cpdef void renumber(packets, int more, to)

cdef void _renumber(const unsigned char[::1] source, Py_ssize_t size, int more, unsigned char[::1] target) noexcept nogil

@cython.locals(at=Py_ssize_t)
cdef void renumber_here(unsigned char[::1] packets, Py_ssize_t size, int more) noexcept nogil
