cimport cython
from posix.unistd cimport pread

@cython.locals(size=Py_ssize_t, done=Py_ssize_t, got=Py_ssize_t)
cdef Py_ssize_t read_into(int descriptor, unsigned char[::1] room, long long offset) noexcept nogil
