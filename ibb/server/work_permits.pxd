cimport cython

from ibb.server.thread_locks cimport ThreadLocks

cdef int _coming_back, _beginning, _kinds


@cython.final
cdef class WorkPermits:
    cdef ThreadLocks _mutex, _turns
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
