cimport cython

from ibb.protocol.little_endian cimport number_at

cdef Py_ssize_t _type_at, _server_at, _seq_at, _domain_at, _chunk_header, _whole
cdef int _filler, _unused, _kind_bits, _commit, _no_lists, _gtid_type, _format

@cython.locals(view="const unsigned char[::1]", data=Py_ssize_t, size=Py_ssize_t, event=Py_ssize_t, kind=int, number="unsigned long long", is_own=bint)
cdef Py_ssize_t _find(page, Py_ssize_t at, Py_ssize_t end, Py_ssize_t last, bint is_any, bint is_alone, unsigned long long domain, unsigned long long server, unsigned long long seq) except -2
