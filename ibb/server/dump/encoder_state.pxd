cimport cython

from ibb.server.dump.event_packets cimport EventPackets
from ibb.server.dump.run_encoder cimport RunEncoder
from ibb.storage.record_walker cimport RecordWalker

cdef int _links, _roots_max, _after_encoder, _after_packets, _after_walker

cpdef tuple place_of(RunEncoder encoder)
cdef long long sent_of(RunEncoder encoder) noexcept nogil

@cython.locals(numbers="long long[::1]", packets=EventPackets, walker=RecordWalker)
cpdef copy_state(RunEncoder to, RunEncoder source)

@cython.locals(place=int)
cdef void save_state(RunEncoder encoder, long long[::1] to, long long at) noexcept nogil

@cython.locals(place=int)
cdef void load_state(RunEncoder encoder, long long[::1] source, long long at) noexcept nogil

@cython.locals(walker=RecordWalker, page="long long", end="long long")
cpdef bint attach(RunEncoder encoder, data, long long page_size, long long first, long long pages, long long visible) except -1

cdef long long _signed(unsigned long long number) noexcept nogil
cdef unsigned long long _unsigned(long long number) noexcept nogil
