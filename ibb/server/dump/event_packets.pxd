cimport cython
from libc.errno cimport EAGAIN
from libc.errno cimport errno as last_error
from libc.string cimport memcpy
from posix.unistd cimport write

from ibb.protocol.fast_checksum cimport crc32_behind
from ibb.storage.record_walker cimport RecordWalker

cdef int _ok, _odd, _full, _head
cdef int _send, _drop
cdef long long _event_bytes_max, _header_size, _gtid, _gtid_size_min, _gtid_size_max


@cython.final
cdef class EventPackets:
    cdef const unsigned char[::1] _fates
    cdef unsigned char[::1] _out
    cdef readonly long long used, event_bytes, wanted, in_event, domain, server, skip
    cdef readonly unsigned long long number
    cdef readonly int seq, is_first
    cdef long long _event_size, _group_used, _group_bytes, _group_sent
    cdef int _marked, _checksum_size, _fate, _group_seq

    cpdef void clear(self) noexcept nogil
    cpdef lend(self, out, long long wanted, int seq)
    cpdef void give_back(self)
    cpdef void take(self) noexcept nogil
    cdef long long offer(self, int descriptor) noexcept nogil
    cdef long long offer_rest(self, int descriptor, long long at) noexcept nogil
    cdef long long offer_from(self, int descriptor, unsigned char[::1] memory, long long at, long long size) noexcept nogil
    cdef void begin_group(self) noexcept nogil
    cdef void end_group(self) noexcept nogil
    cdef void take_back(self) noexcept nogil

    @cython.locals(code=int)
    cdef int feed(self, RecordWalker walker) noexcept nogil

    @cython.locals(data="const unsigned char*", out="unsigned char*", part="long long", left="long long", at="long long", size="long long", code=int)
    cdef int _take_whole(self, RecordWalker walker) noexcept nogil

    @cython.locals(at="long long", size="long long", code=int)
    cdef int _take_part(self, RecordWalker walker) noexcept nogil

    @cython.locals(part="long long")
    cdef void _copy(self, RecordWalker walker, long long to, long long size) noexcept nogil

    @cython.locals(out="const unsigned char*")
    cdef int _begin_event(self, long long at) noexcept nogil

    @cython.locals(out="unsigned char*", code=int)
    cdef int _end_event(self, long long at) noexcept nogil

    @cython.locals(kind=int, flags=int)
    cdef bint _is_usual(self, const unsigned char* data, long long at, long long size) noexcept nogil

    cdef void _note_head(self, const unsigned char* data, long long at) noexcept nogil

    @cython.locals(wire="long long", checksum="unsigned int", flags=int, first="unsigned long long", second="unsigned long long")
    cdef void _frame(self, unsigned char* out, long long at, long long size, const unsigned char* data, long long source) noexcept nogil


@cython.locals(top="unsigned int")
cdef unsigned int _u32(const unsigned char* data, long long at) noexcept nogil

cdef void _put_u32(unsigned char* out, long long at, unsigned int value) noexcept nogil
