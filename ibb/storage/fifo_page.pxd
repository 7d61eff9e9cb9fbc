cimport cython


@cython.final
cdef class FifoPage:
    cdef readonly long long file_no, page_no
    cdef readonly Py_ssize_t end
    cdef readonly bytearray data
    cdef public Py_ssize_t used
    cdef public long long last_lsn
    cdef public bint complete, flushed_clean


@cython.locals(page=FifoPage)
cpdef set_logged(list pages, long long lsn)
