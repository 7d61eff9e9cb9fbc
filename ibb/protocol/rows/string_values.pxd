cimport cython
from libc.string cimport memcpy

cdef unsigned long long _high_bits

@cython.locals(total=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t)
cpdef Py_ssize_t count_bytes(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, Py_ssize_t pad) except? -1

@cython.locals(value=Py_ssize_t, index=Py_ssize_t, byte=Py_ssize_t)
cdef Py_ssize_t _read_length(const unsigned char[::1] data, Py_ssize_t place, Py_ssize_t prefix) noexcept

@cython.locals(end=Py_ssize_t, is_ascii=bint, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t,
               source="const unsigned char*", target="unsigned char*")
cpdef bint take_strings(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, Py_ssize_t pad, int[::1] offsets, unsigned char[::1] out) except? -1

cdef void _copy(unsigned char* out, Py_ssize_t to, const unsigned char* data, Py_ssize_t place, Py_ssize_t length) noexcept

@cython.locals(seen="unsigned char", index=Py_ssize_t)
cdef bint _is_ascii(const unsigned char* data, Py_ssize_t place, Py_ssize_t length) noexcept

@cython.locals(word="unsigned long long")
cdef bint _are_eight_ascii(const unsigned char* data, Py_ssize_t place) noexcept

@cython.locals(total=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t, index=Py_ssize_t, stop=Py_ssize_t,
               size=Py_ssize_t, source="const unsigned char*", entries="const unsigned char*")
cpdef Py_ssize_t count_mapped_bytes(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, const unsigned char[::1] table, bint has_ascii) except? -1

@cython.locals(end=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, length=Py_ssize_t, past=Py_ssize_t,
               missing=Py_ssize_t, size=Py_ssize_t,
               source="const unsigned char*", target="unsigned char*", entries="const unsigned char*")
cpdef Py_ssize_t take_mapped(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t prefix, const unsigned char[::1] table, bint has_ascii, Py_ssize_t room, int[::1] offsets, unsigned char[::1] out) except? -1

@cython.locals(past=Py_ssize_t, missing=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _take_eight(const unsigned char* source, Py_ssize_t place, const unsigned char* entries, unsigned char* target, Py_ssize_t end) noexcept

@cython.locals(byte=Py_ssize_t, entry="unsigned int")
cdef Py_ssize_t _take_one(const unsigned char* source, Py_ssize_t place, const unsigned char* entries, unsigned char* target, Py_ssize_t end) noexcept

@cython.locals(end=Py_ssize_t, count=Py_ssize_t, writing=bint, row=Py_ssize_t, place=Py_ssize_t, start=Py_ssize_t,
               known=Py_ssize_t, bit=Py_ssize_t, label=Py_ssize_t, begin=Py_ssize_t, length=Py_ssize_t, index=Py_ssize_t)
cpdef Py_ssize_t take_labels(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t size, bint is_set, const int[::1] label_offsets, const unsigned char[::1] labels, int[::1] offsets, unsigned char[::1] out) except? -1
