cimport cython
from libc.string cimport memcpy

from ibb.protocol.fast_checksum cimport crc32_at
from ibb.storage.record_walker cimport RecordWalker

cdef int _ok, _need, _odd, _full, _pass
cdef int _between, _in_commit, _in_list
cdef int _send, _drop
cdef int _domains_max, _passed_max
cdef long long _event_bytes_max, _header_size, _gtid, _gtid_size_min, _gtid_size_max


@cython.final
cdef class RunEncoder:
    cdef readonly RecordWalker walker
    cdef const unsigned char[::1] _fates
    cdef unsigned char[::1] _out
    cdef readonly long long border, behind, used, event_bytes, skip
    cdef readonly int seq
    cdef public bint is_last
    cdef long long _wanted, _count, _first, _resume, _node, _node_at, _event_has, _event_size
    cdef long long _group_used, _group_bytes, _group_sent, _domain, _server
    cdef unsigned long long _number
    cdef int _starts, _passed
    cdef int _marked, _checksum_size, _phase, _node_open, _fate, _is_first, _gtids, _group_seq
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

    @cython.locals(place=int)
    cpdef list take(self)

    @cython.locals(code=int)
    cdef int _run(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _find_group(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _begin_group(self) noexcept nogil

    cdef int _end_commit(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _pass_group(self) noexcept nogil

    @cython.locals(place=int, is_other=bint)
    cdef int _judge_group(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _go_through_list(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _open_node(self) noexcept nogil

    @cython.locals(place=int)
    cdef int _end_group(self, long long resume) noexcept nogil

    cpdef void take_back(self) noexcept nogil

    @cython.locals(code=int)
    cdef int _feed(self) noexcept nogil

    @cython.locals(at="long long", size="long long", code=int)
    cdef int _take_event(self) noexcept nogil

    @cython.locals(part="long long")
    cdef void _copy(self, long long to, long long size) noexcept nogil

    @cython.locals(kind=int, flags=int, size="long long")
    cdef int _begin_event(self, long long at) noexcept nogil

    @cython.locals(code=int, size="long long", wire="long long", checksum="unsigned int")
    cdef int _end_event(self, long long at) noexcept nogil

    @cython.locals(value="unsigned long long", place="long long")
    cdef unsigned long long _read(self, long long at, int size) noexcept nogil

    @cython.locals(place="long long")
    cdef void _write(self, long long at, unsigned long long value, int size) noexcept nogil
