cimport cython

@cython.locals(value="unsigned long long", place=Py_ssize_t, byte="unsigned char")
cpdef unsigned long long number_at(const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t size) noexcept
