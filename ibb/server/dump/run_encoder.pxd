cimport cython

from ibb.server.dump.event_packets cimport EventPackets
from ibb.server.dump.timed_poll cimport can_take, clock
from ibb.server.work_permits cimport WorkPermits
from ibb.storage.page_ring cimport PageRing
from ibb.storage.record_walker cimport RecordWalker

cdef int _ok, _need, _odd, _full, _head, _pass
cdef int _between, _in_commit, _in_list
cdef int _domains_max, _passed_max
cdef long long _rest_max
cdef Py_ssize_t _few_bytes


@cython.final
cdef class RunEncoder:
    cdef readonly RecordWalker walker
    cdef readonly EventPackets packets
    cdef readonly long long border, behind
    cdef public bint is_last
    cdef readonly long long sent, sent_bytes, kept, rested
    cdef readonly int error
    cdef readonly bint is_resting
    cdef public long long stop_at
    cdef long long _count, _first, _resume, _node, _node_at
    cdef int _starts, _passed, _phase, _node_open, _gtids
    cdef long long _start_domains[32]
    cdef long long _start_servers[32]
    cdef unsigned long long _start_numbers[32]
    cdef long long _domains[32]
    cdef long long _servers[32]
    cdef unsigned long long _numbers[32]

    cpdef seek(self, long long file_no, long long offset)
    @cython.locals(place=int)
    cpdef pass_over(self, list starts)

    @cython.locals(code=int)
    cpdef int run(self, out, long long wanted, int seq) except -1

    @cython.locals(code=int)
    cpdef int pump(self, out, long long wanted, int seq, PageRing ring, int descriptor, long long most, long long nanoseconds, WorkPermits permits=*) except -1

    @cython.locals(code=int)
    cdef int fill(self, PageRing ring) noexcept nogil

    cdef bint has_taken(self, long long size, int descriptor, WorkPermits permits) noexcept nogil

    @cython.locals(begun="long long", has_room=bint)
    cdef bint _has_room(self, int descriptor, WorkPermits permits) noexcept nogil

    @cython.locals(code=int, end="long long", size="long long")
    cdef int _pump(self, PageRing ring, int descriptor, long long most, long long nanoseconds, WorkPermits permits) noexcept nogil

    @cython.locals(place=int)
    cpdef list take(self)

    cpdef void end_run(self) noexcept nogil

    @cython.locals(code=int, is_full=bint)
    cdef int _run(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _find_group(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _begin_group(self) noexcept nogil

    cdef int _end_commit(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _pass_group(self) noexcept nogil

    @cython.locals(place=int, is_other=bint, is_before=bint)
    cdef int _judge_group(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _go_through_list(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _open_node(self) noexcept nogil

    @cython.locals(place=int)
    cdef int _end_group(self, long long resume) noexcept nogil

    cpdef void take_back(self) noexcept nogil
