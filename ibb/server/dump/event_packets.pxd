cimport cython
from libc.string cimport memcpy

from ibb.protocol.fast_checksum cimport crc32_at
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
    cdef void begin_group(self) noexcept nogil
    cdef void end_group(self) noexcept nogil
    cdef void take_back(self) noexcept nogil

    @cython.locals(code=int)
    cdef int feed(self, RecordWalker walker) noexcept nogil

    @cython.locals(at="long long", size="long long", code=int)
    cdef int _take_event(self, RecordWalker walker) noexcept nogil

    @cython.locals(part="long long")
    cdef void _copy(self, RecordWalker walker, long long to, long long size) noexcept nogil

    @cython.locals(kind=int, flags=int, size="long long")
    cdef int _begin_event(self, long long at) noexcept nogil

    @cython.locals(code=int, size="long long", wire="long long", checksum="unsigned int")
    cdef int _end_event(self, long long at) noexcept nogil

    @cython.locals(value="unsigned long long", place="long long")
    cdef unsigned long long _read(self, long long at, int size) noexcept nogil

    @cython.locals(place="long long")
    cdef void _write(self, long long at, unsigned long long value, int size) noexcept nogil
