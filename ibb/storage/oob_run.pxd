cimport cython

from ibb.storage.oob_forest cimport OobForest

cdef Py_ssize_t _chunk_header, _chunk_min, _checksum

@cython.locals(area=Py_ssize_t, page="long long", used=Py_ssize_t, left=Py_ssize_t, payload=Py_ssize_t, further=Py_ssize_t)
cpdef long long start_behind(long long start, Py_ssize_t size, Py_ssize_t page_size) noexcept

@cython.locals(used=Py_ssize_t, at=Py_ssize_t, which=Py_ssize_t, head=Py_ssize_t, piece=Py_ssize_t)
cdef Py_ssize_t _plan(OobForest forest, unsigned char[::1] heads, long long[::1] head_bounds, long long[::1] bounds,
                      long long[::1] starts, unsigned long long file_no, long long start, Py_ssize_t page_size,
                      Py_ssize_t piece_size, Py_ssize_t size) except -1

@cython.locals(used=Py_ssize_t)
cdef long long _begin_at(long long offset, Py_ssize_t page_size) noexcept
