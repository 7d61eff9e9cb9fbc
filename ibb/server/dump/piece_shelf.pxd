cimport cython
from libc.string cimport memcpy

from ibb.server.dump.encoder_state cimport load_state, save_state, sent_of
from ibb.server.dump.run_encoder cimport RunEncoder
from ibb.server.dump.sequence_ids cimport renumber_here
from ibb.server.thread_locks cimport ThreadLocks

cdef int _kind, _generation, _file, _border, _sent, _users, _turn, _groups, _state, _used
cdef int _empty, _width, _domains_max


@cython.final
cdef class PieceShelf:
    cdef unsigned char[::1] _memory
    cdef long long[::1] _numbers
    cdef unsigned long long[::1] _gtids
    cdef long long _room, _pieces, _now
    cdef ThreadLocks _lock

    @cython.locals(border="long long", sent="long long", found="long long")
    cpdef long long find(self, RunEncoder encoder, long long kind, long long generation) noexcept nogil

    @cython.locals(seq=int, used="long long", at="long long", more=int, size="long long")
    cdef long long send(self, long long piece, RunEncoder encoder, int descriptor) noexcept nogil

    @cython.locals(used="long long", file_no="long long", piece="long long", base="long long", is_first=bint)
    cdef bint keep(self, RunEncoder encoder, long long kind, long long generation, long long border, long long sent) noexcept nogil

    @cython.locals(piece="long long", base="long long", is_place=bint, is_file=bint)
    cdef long long _at(self, long long kind, long long generation, long long file_no, long long border, long long sent) noexcept nogil

    @cython.locals(oldest="long long", turn="long long", piece="long long", base="long long", is_older=bint)
    cdef long long _oldest(self) noexcept nogil

    cdef long long _size_of(self, long long piece) noexcept nogil

    @cython.locals(used="long long")
    cdef void _copy_in(self, long long at, RunEncoder encoder) noexcept nogil

    @cython.locals(size="long long")
    cdef void _copy_out(self, long long at, RunEncoder encoder, long long first) noexcept nogil

    @cython.locals(base="long long", place=int)
    cdef void _save_groups(self, long long piece, RunEncoder encoder) noexcept nogil

    @cython.locals(base="long long", place=int)
    cdef void _load_groups(self, long long piece, RunEncoder encoder) noexcept nogil
