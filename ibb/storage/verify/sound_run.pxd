cimport cython

from ibb.protocol.fast_checksum cimport crc32c_at
from ibb.storage.verify.found_items cimport FoundItems
from ibb.storage.verify.open_lists cimport OpenLists
from ibb.storage.verify.record_head cimport RecordHead

cdef int _ok, _more, _odd, _full
cdef int _last, _continuation, _type_mask, _filler
cdef int _commit, _state, _oob, _own_walk
cdef long long _gtid_start, _oob_head_max, _held_bytes, _no_link, _elsewhere


@cython.final
cdef class SoundRun:
    cdef OpenLists _lists
    cdef RecordHead _head
    cdef FoundItems _found
    cdef const unsigned char[::1] _data
    cdef readonly long long page, border, records
    cdef readonly int last_type
    cdef long long _file_no, _page_size, _area_end, _interval, _first_page, _end_page, _place, _begin
    cdef int _is_entered, _open, _is_plain, _is_head, _has_piece, _list

    cpdef enter_file(self, long long file_no, long long page_size, long long interval)
    cpdef begin(self, long long page, long long place)

    @cython.locals(code=int)
    cpdef int run(self, data, long long first, long long end) except -1

    cpdef list take(self)

    @cython.locals(code=int, base="long long")
    cdef int _run(self) noexcept nogil

    cdef void _give_up(self) noexcept nogil

    @cython.locals(data="const unsigned char*", end="long long", checksum="unsigned int", stored="unsigned int", is_due=bint)
    cdef int _enter(self, long long base) noexcept nogil

    @cython.locals(data="const unsigned char*", area_end="long long", place="long long", at="long long", size="long long", code=int)
    cdef int _take_page(self, long long base) noexcept nogil

    @cython.locals(record_type=int, code=int)
    cdef int _take_chunk(self, int kind, long long place, long long at, long long end) noexcept nogil

    cdef long long _begin_record(self, int record_type, long long place, long long at) noexcept nogil

    @cython.locals(data="const unsigned char*", offset="long long")
    cdef int _take_state(self, long long place, long long at, long long size) noexcept nogil

    cdef int _end_record(self) noexcept nogil

    @cython.locals(data="const unsigned char*", length="long long")
    cdef int _feed_commit(self, long long at, long long end) noexcept nogil

    cdef int _end_commit(self) noexcept nogil

    @cython.locals(numbers="const long long*", lists=int, at="long long", which=int, first="long long", last="long long")
    cdef bint _is_group_of_lists(self) noexcept nogil

    @cython.locals(data="const unsigned char*", known="long long", size="long long")
    cdef int _feed_oob(self, long long at, long long end) noexcept nogil

    @cython.locals(file_no="long long", numbers="const long long*", which=int, is_here=bint, left="long long", right="long long", is_before=bint)
    cdef bint _find_list(self) noexcept nogil

    cdef int _end_oob(self) noexcept nogil

    @cython.locals(file_no="long long", offset="long long")
    cdef long long _link(self, int which) noexcept nogil
