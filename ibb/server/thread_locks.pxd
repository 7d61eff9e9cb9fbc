cimport cython
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)


@cython.final
cdef class ThreadLocks:
    cdef PyThread_type_lock _locks[256]
    cdef int _count

    cdef void take(self, int which) noexcept nogil

    cdef void give(self, int which) noexcept nogil
