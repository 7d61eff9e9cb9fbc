cimport cython
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "<poll.h>" nogil:
    enum:
        POLLOUT
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* descriptors, unsigned long count, int milliseconds)


@cython.locals(now=timespec, seconds="long long")
cdef long long clock() noexcept nogil

@cython.locals(asked=pollfd)
cdef bint can_take(int descriptor, long long nanoseconds) noexcept nogil
