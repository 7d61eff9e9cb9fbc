cimport cython

from ibb.protocol.fast_checksum cimport crc32c_at
from ibb.storage.fifo_page cimport FifoPage


cdef class RecordRun:
    cdef readonly Py_ssize_t next, redo_size
    cdef readonly bint is_open
    cdef object _own
    cdef list _shared
    cdef int _type
    cdef bint _each_has_own
    cdef const unsigned char[::1] _heads, _data
    cdef long long[::1] _head_bounds, _bounds
    cdef unsigned char[::1] _log
    cdef Py_ssize_t _own_size, _end, _group, _group_shared, _group_size, _head, _head_size, _size, _done
    cdef unsigned long long _file_no, _lsn, _synced_lsn

    cpdef begin(self, unsigned long long file_no, unsigned long long lsn, unsigned long long synced_lsn)

    @cython.locals(payload=Py_ssize_t, page=FifoPage, begun=Py_ssize_t, since=Py_ssize_t, used=Py_ssize_t, changed=list)
    cpdef list fill_pages(self, FifoPage tail, fifo, long long page_no, Py_ssize_t page_size, Py_ssize_t pages_after)

    @cython.locals(out="unsigned char[::1]", end=Py_ssize_t, payload=Py_ssize_t, size=Py_ssize_t, room=Py_ssize_t,
                   left=Py_ssize_t, length=Py_ssize_t, kind=int)
    cpdef Py_ssize_t fill(self, page, Py_ssize_t used, Py_ssize_t since, unsigned long long page_no, Py_ssize_t pages_after) except -1

    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _next_size(self)

    @cython.locals(head=Py_ssize_t, count=Py_ssize_t, index=Py_ssize_t, start=Py_ssize_t)
    cdef _copy(self, unsigned char[::1] out, Py_ssize_t at, Py_ssize_t length)

    cdef _begin_group(self, Py_ssize_t size)

    @cython.locals(size=Py_ssize_t, at=Py_ssize_t, is_shared=bint)
    cdef _log_change(self, page, unsigned char[::1] content, Py_ssize_t start, Py_ssize_t end, unsigned long long page_no)

    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t, before=Py_ssize_t,
                   checksum="unsigned int")
    cdef _end_group(self)

    cdef _put_head(self, Py_ssize_t at, unsigned long long size)

    cdef unsigned int _checksum(self, unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, unsigned int before) except? 0

    @cython.locals(log="unsigned char[::1]", index=Py_ssize_t)
    cdef _put(self, Py_ssize_t at, unsigned long long number, Py_ssize_t size)

    cdef _need(self, Py_ssize_t size)
