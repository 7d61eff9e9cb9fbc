cimport cython

from ibb.protocol.fast_checksum cimport crc32c_at

cdef Py_ssize_t _checksum_size

@cython.locals(end=Py_ssize_t, place=Py_ssize_t, checksum="unsigned int")
cdef _seal(unsigned char[::1] page)
