cimport cython

from ibb.protocol.fast_checksum cimport crc32c_at

cdef int _ok, _need, _odd, _short
cdef Py_ssize_t _few_bytes
cdef long long _byte_needed, _byte_odd, _byte_missing
cdef int _roots_max

@cython.locals(pages=Py_ssize_t, view="const unsigned char[::1]")
cpdef Py_ssize_t count_good(data, Py_ssize_t page_size) except -1

@cython.locals(page=Py_ssize_t, base=Py_ssize_t, end=Py_ssize_t, checksum="unsigned int", stored="unsigned int")
cdef Py_ssize_t good_pages(const unsigned char[::1] data, Py_ssize_t page_size, Py_ssize_t pages) noexcept nogil


@cython.final
cdef class RecordWalker:
    cdef const unsigned char[::1] data
    cdef readonly long long file_no, page_size, page, begin, count, first, last, list_count, left, part
    cdef readonly int type, ends
    cdef long long _first_page, _end_page, _start, _place, _area_end, _last_start, _visible, _turn, _room
    cdef int _kind, _nested, _roots
    cdef long long links[5]
    cdef long long _root_at[64]
    cdef int _height[64]

    cpdef seek(self, long long file_no, long long offset)
    cpdef enter(self, ring, long long page_size)
    cdef void show(self, long long first, long long end, long long turn) noexcept nogil
    cpdef long long wanted_page(self, long long page_size)

    @cython.locals(page="long long", known="long long", is_known=bint)
    cpdef bint load(self, data, long long page_size, long long first, long long pages, long long visible) except -1

    cdef long long at(self) noexcept nogil
    cdef void go(self, long long offset) noexcept nogil

    @cython.locals(code=int)
    cdef int begin_record(self) noexcept nogil

    @cython.locals(code=int, kind=int)
    cdef int next_part(self) noexcept nogil

    @cython.locals(code=int)
    cdef int skip(self) noexcept nogil

    @cython.locals(page="long long", place="long long", part="long long", left="long long", ends=int, nested=int, code=int)
    cdef int look_ahead(self) noexcept nogil

    @cython.locals(code=int, is_node=bint)
    cdef int pass_node(self) noexcept nogil

    @cython.locals(code=int)
    cdef int begin_node(self) noexcept nogil

    cdef bint end_node(self, bint is_node) noexcept nogil

    @cython.locals(code=int, is_here=bint, is_last=bint, is_all=bint)
    cdef int read_list(self) noexcept nogil

    @cython.locals(which=int, value="long long")
    cdef int read_numbers(self, int count) noexcept nogil

    @cython.locals(value="long long", byte="long long", more=int, shift=int, _=int)
    cdef long long read_number(self) noexcept nogil

    @cython.locals(code=int, value="long long")
    cdef long long _read_byte(self) noexcept nogil

    @cython.locals(roots=int, joins=bint, fits=bint, height=int)
    cdef bint _add_node(self) noexcept nogil

    @cython.locals(offset="long long", file_no="long long")
    cdef bint _is_link(self, int which, int root) noexcept nogil

    @cython.locals(spot="long long")
    cdef long long _base(self) noexcept nogil

    @cython.locals(place="long long", base="long long", visible="long long", kind=int, size="long long", end="long long")
    cdef int _next_chunk(self) noexcept nogil
