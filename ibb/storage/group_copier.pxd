cimport cython
from libc.string cimport memcpy

from ibb.storage.record_walker cimport RecordWalker

cdef int _ok, _need, _odd, _full, _gtid
cdef long long _group_bytes_max, _wanted, _groups_max, _gtid_size_min, _head_size_max


@cython.final
cdef class GroupCopier:
    cdef readonly RecordWalker walker
    cdef readonly long long border, count, used
    cdef readonly object data, offsets, starts, ends, domains, servers, numbers, times
    cdef unsigned char[::1] _out, _list
    cdef long long[::1] _offsets, _starts, _ends, _domains, _servers, _numbers, _times
    cdef long long _list_bytes, _copied

    cpdef seek(self, long long file_no, long long offset)
    cpdef void clear(self) noexcept nogil

    @cython.locals(code=int)
    cpdef int run(self) except -1

    @cython.locals(code=int)
    cdef int _run(self) noexcept nogil

    @cython.locals(code=int, is_node=bint, room="long long")
    cdef int _copy_node(self) noexcept nogil

    @cython.locals(code=int, begin="long long", room="long long", end="long long", size="long long")
    cdef int _copy_group(self) noexcept nogil

    @cython.locals(at="long long", end="long long", size="long long", part="long long", code=int)
    cdef int _copy_rest(self, unsigned char[::1] out, long long to, long long room) noexcept nogil

    @cython.locals(at="long long", count="long long", data="unsigned char*", size="long long", number="long long")
    cdef bint _note_head(self, long long end) noexcept nogil


@cython.locals(top="unsigned int")
cdef unsigned int _u32(const unsigned char* data, long long at) noexcept nogil
