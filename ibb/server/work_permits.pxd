cimport cython
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)

cdef int _coming_back, _beginning, _kinds


@cython.final
cdef class WorkPermits:
    cdef PyThread_type_lock _mutex
    cdef PyThread_type_lock _turns[256]
    cdef int _asking[2]
    cdef int _first[2]
    cdef readonly int free, resting
    cdef int _resting_max, _threads

    cpdef bint lend(self)

    @cython.locals(may=bint)
    cdef bint rest(self) noexcept nogil

    cdef void work_on(self) noexcept nogil

    @cython.locals(turn=int)
    cdef void _take(self, int kind) noexcept nogil

    @cython.locals(kind=int, turn=int)
    cdef void _hand_on(self) noexcept nogil

    cdef void _wait_for(self, int turn) noexcept nogil

    cdef void _call(self, int turn) noexcept nogil

    cdef void _acquire(self) noexcept nogil

    cdef void _release(self) noexcept nogil
