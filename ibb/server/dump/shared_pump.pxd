cimport cython

from ibb.server.dump.encoder_state cimport sent_of
from ibb.server.dump.piece_shelf cimport PieceShelf
from ibb.server.dump.run_encoder cimport RunEncoder
from ibb.server.dump.timed_poll cimport clock
from ibb.server.work_permits cimport WorkPermits
from ibb.storage.page_ring cimport PageRing

cdef int _full, _need, _domains_max


@cython.final
cdef class SharedPump:
    cdef PieceShelf _shelf
    cdef long long _kind, _generation, _wanted, _grid
    cdef int _gtids
    cdef readonly bint is_lost
    cdef readonly long long found
    cdef long long _made, _made_max
    cdef long long _domains[32]
    cdef long long _servers[32]
    cdef unsigned long long _numbers[32]

    @cython.locals(code=int, end="long long")
    cpdef int run(self, RunEncoder encoder, out, int seq, PageRing ring, int descriptor, long long most, long long nanoseconds, bint is_followed, long long made_max, WorkPermits permits=*) except -1

    @cython.locals(place=int)
    cpdef list take(self)

    @cython.locals(piece="long long", size="long long", code=int)
    cdef int _run(self, RunEncoder encoder, PageRing ring, int descriptor, long long most, long long end, bint is_followed, WorkPermits permits) noexcept nogil

    @cython.locals(border="long long", sent="long long", code=int)
    cdef int _make(self, RunEncoder encoder, PageRing ring, bint is_followed) noexcept nogil

    @cython.locals(which=int, place=int)
    cdef bint _take_groups(self, RunEncoder encoder) noexcept nogil
