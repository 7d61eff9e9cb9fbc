"""A way to a server on which connections can be lost without a word, as behind a router."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress

PIECE_BYTES = 1 << 16


class MuteProxy:
    """
    Passes on what browser and server say, but for connections of a time in which it was mute.

    `mute` takes the word from all connections for ever, and from those that begin until `speak`;
    `unheard` are the latter.
    """

    def __init__(self, port):
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.unheard = 0
        self._mute = False
        self._lost = set()
        self._sockets = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def mute(self):
        with self._lock:
            self._mute = True
            self._lost.update(self._sockets)

    def speak(self):
        with self._lock:
            self._mute = False

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()  # there are no others from here on
        for one in self._sockets:
            with suppress(OSError):  # gone already
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self):
        while True:
            try:
                browser, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                browser.close()  # as the server would have refused it
                continue
            with self._lock:
                self._sockets += (browser, server)
                if self._mute:
                    self.unheard += 1
                    self._lost.update((browser, server))
            for pair in ((browser, server), (server, browser)):
                self._threads.append(threading.Thread(target=self._pass, args=pair))
                self._threads[-1].start()

    def _pass(self, source, target):
        with suppress(OSError):  # either of them is gone
            while True:
                data = source.recv(PIECE_BYTES)
                with self._lock:
                    is_lost = source in self._lost
                if not is_lost:
                    target.sendall(data)
                if not data:
                    break
            if not is_lost:
                target.shutdown(socket.SHUT_WR)


@contextmanager
def muted(port):
    """Lend a `MuteProxy` to a port of this machine."""
    proxy = MuteProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
