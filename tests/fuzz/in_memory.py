"""A server's surroundings in memory: both ends of a connection, and pools without threads."""

import asyncio
from concurrent.futures import Executor, Future

OUTPUT_BYTES_MAX = 4 << 20  # that a session may answer to one input; more is thrown away
GRACE_TURNS = 20  # of the loop, in which a dump may say something before its client leaves


class AtOnce(Executor):
    """Does what it is given before it says so: handing over to a thread costs more."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as every executor
            future.set_exception(error)
        return future


class Said:
    """A reader of *data* in pieces of *step* bytes, which then ends."""

    def __init__(self, data, step):
        self._data = data
        self._step = step
        self._offset = 0
        self.dumping = lambda: False

    async def read(self, size):
        piece = self._data[self._offset : self._offset + min(size, self._step)]
        self._offset += len(piece)
        if not piece:
            for _ in range(GRACE_TURNS if self.dumping() else 1):
                await asyncio.sleep(0)
        return piece

    def exception(self):
        return None


class Heard:
    """A writer that keeps what is written; its own transport."""

    def __init__(self):
        self.data = bytearray()
        self.closed = False
        self.transport = self

    def write(self, data):
        if len(self.data) < OUTPUT_BYTES_MAX:
            self.data += data

    async def drain(self):
        return

    async def wait_closed(self):
        return

    def write_eof(self):
        return

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def abort(self):
        self.closed = True

    def set_write_buffer_limits(self, high):
        return

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, name):
        return {"sockname": ("127.0.0.1", 3307), "peername": ("127.0.0.1", 50000)}.get(name)
