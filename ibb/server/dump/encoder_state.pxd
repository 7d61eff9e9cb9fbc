cimport cython

from ibb.server.dump.event_packets cimport EventPackets
from ibb.server.dump.run_encoder cimport RunEncoder
from ibb.storage.record_walker cimport RecordWalker

cpdef tuple place_of(RunEncoder encoder)
cpdef copy_state(RunEncoder to, RunEncoder source)
cdef _copy_group(EventPackets packets, EventPackets other)

@cython.locals(place=int)
cdef _copy_walk(RecordWalker walker, RecordWalker other)

@cython.locals(walker=RecordWalker, page="long long", end="long long")
cpdef bint attach(RunEncoder encoder, data, long long page_size, long long first, long long pages, long long visible) except -1
