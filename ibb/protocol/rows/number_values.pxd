cimport cython


@cython.locals(nulls=Py_ssize_t, row=Py_ssize_t)
cpdef Py_ssize_t take_validity(const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, unsigned char[::1] out) except? -1

@cython.locals(row=Py_ssize_t, column=Py_ssize_t)
cpdef take_presence(const int[::1] places, Py_ssize_t width, Py_ssize_t rows, Py_ssize_t size, unsigned char[::1] out)

@cython.locals(row=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t)
cpdef take_integers(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t size, bint signed, Py_ssize_t out_size, unsigned char[::1] out)

@cython.locals(row=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t)
cpdef take_big_endian(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t size, Py_ssize_t out_size, unsigned char[::1] out)

@cython.locals(row=Py_ssize_t, place=Py_ssize_t)
cpdef take_booleans(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, unsigned char[::1] out)

@cython.locals(row=Py_ssize_t, place=Py_ssize_t, year=int)
cpdef take_years(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, unsigned char[::1] out)

@cython.locals(row=Py_ssize_t, place=Py_ssize_t, flip=int, low="unsigned long long", second="unsigned long long",
               third="unsigned long long", high="unsigned long long", at=Py_ssize_t, left=Py_ssize_t,
               groups=Py_ssize_t, group=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t,
               value="unsigned long long", index=Py_ssize_t, byte="unsigned long long",
               factor="unsigned long long", _=Py_ssize_t)
cpdef Py_ssize_t take_decimals(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t digits, Py_ssize_t scale, unsigned char[::1] out) except? -2

@cython.locals(row=Py_ssize_t, place=Py_ssize_t, flip=int, end=Py_ssize_t, at=Py_ssize_t, left=Py_ssize_t,
               groups=Py_ssize_t, whole=Py_ssize_t, leading=bint, group=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t,
               value="unsigned long long", index=Py_ssize_t, byte="unsigned long long",
               factor="unsigned long long", digit=int, _=Py_ssize_t)
cpdef Py_ssize_t take_decimal_texts(const unsigned char[::1] data, const int[::1] places, Py_ssize_t width, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t digits, Py_ssize_t scale, int[::1] offsets, unsigned char[::1] out) except? -1
