cimport cython

cdef const unsigned char[::1] _kind_of
cdef Py_ssize_t _header_size, _maps_max
cdef int _begin, _map, _end

@cython.locals(view="const unsigned char[::1]", size=Py_ssize_t, at=Py_ssize_t, length=Py_ssize_t,
               position=Py_ssize_t, kind=int, place=Py_ssize_t, found=list, maps=list)
cpdef find_rows(data)

@cython.locals(place=Py_ssize_t, start=Py_ssize_t, same=int)
cdef Py_ssize_t _find_map(const unsigned char[::1] view, list maps, Py_ssize_t at) except -2

@cython.locals(length=Py_ssize_t)
cdef Py_ssize_t _length(const unsigned char[::1] view, Py_ssize_t at) noexcept
