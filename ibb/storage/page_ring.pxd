cimport cython

from ibb.storage.os_read cimport read_into
from ibb.storage.record_walker cimport RecordWalker, good_pages


@cython.final
cdef class PageRing:
    cdef unsigned char[::1] _memory
    cdef long long _file_no, _page_size, _room, _first, _end, _turn, _stop, _at_a_time
    cdef int _descriptor

    @cython.locals(page="long long", is_there=bint)
    cpdef bint open(self, RecordWalker walker, long long file_no, long long page_size, int descriptor, long long stop) except -1

    @cython.locals(page="long long")
    cdef bint follow(self, RecordWalker walker) noexcept nogil

    @cython.locals(has_more=bint)
    cdef bint more(self, RecordWalker walker) noexcept nogil

    @cython.locals(count="long long", spot="long long", over="long long", good="long long")
    cdef bint _has_read(self, long long page) noexcept nogil

    @cython.locals(size="long long", at="long long", done=Py_ssize_t, room="unsigned char[::1]")
    cdef long long _read(self, long long spot, long long count) noexcept nogil
