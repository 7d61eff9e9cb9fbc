cimport cython

@cython.locals(total=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t)
cpdef Py_ssize_t count_bytes(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, Py_ssize_t pad) except? -1

@cython.locals(value=Py_ssize_t, index=Py_ssize_t, byte=Py_ssize_t)
cdef Py_ssize_t _read_length(const unsigned char[::1] data, Py_ssize_t place, Py_ssize_t prefix) noexcept

@cython.locals(end=Py_ssize_t, seen="unsigned char", row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t,
               index=Py_ssize_t, byte="unsigned char")
cpdef bint take_strings(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, Py_ssize_t pad, int[::1] offsets, unsigned char[::1] out) except? -1

@cython.locals(total=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t, index=Py_ssize_t, size=Py_ssize_t)
cpdef Py_ssize_t count_mapped_bytes(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, const unsigned char[::1] table) except? -1

@cython.locals(end=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t, index=Py_ssize_t,
               entry=Py_ssize_t, size=Py_ssize_t)
cpdef take_mapped(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, const unsigned char[::1] table, int[::1] offsets, unsigned char[::1] out)

@cython.locals(end=Py_ssize_t, count=Py_ssize_t, writing=bint, row=Py_ssize_t, place=Py_ssize_t, start=Py_ssize_t,
               known=Py_ssize_t, bit=Py_ssize_t, label=Py_ssize_t, begin=Py_ssize_t, length=Py_ssize_t, index=Py_ssize_t)
cpdef Py_ssize_t take_labels(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t size, bint is_set, const int[::1] label_offsets, const unsigned char[::1] labels, int[::1] offsets, unsigned char[::1] out) except? -1
