cimport cython

cdef long long _days_from_civil(long long year, long long month, long long day) noexcept
cdef long long _month_days(long long year, long long month) noexcept

@cython.locals(index=Py_ssize_t, value="long long", whole="long long", size=Py_ssize_t, byte="long long", half="long long",
               unit="long long", fraction="long long")
cdef int _read_moment(const unsigned char[::1] data, Py_ssize_t place, int kind, int extra, long long[::1] fields) noexcept

@cython.locals(epoch="long long")
cdef int _check_time(long long[::1] fields) noexcept

@cython.locals(year="long long", month="long long", day="long long", time="long long")
cdef int _check_date(long long[::1] fields, bint is_date) noexcept

@cython.locals(left_out=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, state=int, value="long long", index=Py_ssize_t)
cpdef Py_ssize_t take_moments(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, int kind, int extra, Py_ssize_t out_size, long long[::1] fields, unsigned char[::1] out, unsigned char[::1] marks) except? -1

@cython.locals(end=Py_ssize_t, row=Py_ssize_t, place=Py_ssize_t, state=int)
cpdef Py_ssize_t take_moment_texts(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, int kind, int extra, int digits, long long[::1] fields, int[::1] offsets, unsigned char[::1] out) except? -1

@cython.locals(index=Py_ssize_t)
cdef Py_ssize_t _write_digits(unsigned char[::1] out, Py_ssize_t at, long long value, Py_ssize_t count) noexcept

@cython.locals(seconds="long long", days="long long", era="long long", of_era="long long", year="long long",
               of_year="long long", shifted="long long")
cdef void _civil_from_epoch(long long[::1] fields) noexcept
