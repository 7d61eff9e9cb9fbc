cimport cython

@cython.locals(rest="unsigned long long", more=int, place=Py_ssize_t)
cpdef Py_ssize_t put(unsigned char[::1] out, Py_ssize_t at, unsigned long long value) except -1
