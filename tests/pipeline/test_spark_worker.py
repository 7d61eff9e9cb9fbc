"""What a Python worker of Spark is spared, and no other program: garbage collections, and waits."""

import gc
import os
import pickle
import socket
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ibb.pipeline import spark_worker
from ibb.pipeline.batch_reader import BatchReader, PushdownReader
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.spark_worker import acknowledge_at_once, spare_collections
from ibb.pipeline.stream_reader import StreamReader

WORKER = """
import gc, sys
from types import SimpleNamespace
from ibb.pipeline.spark_worker import spare_collections

sys.modules["__main__"].__spec__ = SimpleNamespace(name=sys.argv[1])
loop = []
loop.append(loop)
del loop
spare_collections()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
spare_collections()
print(frozen, gc.get_freeze_count() == frozen, gc.collect())
"""


def worker(name):
    done = subprocess.run(
        [sys.executable, "-c", WORKER, name], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_worker_of_spark_freezes_what_it_has_once():
    frozen, is_same, _ = worker("pyspark.daemon")
    assert int(frozen) > 1000
    assert is_same == "True"


def test_no_other_program_does():
    assert worker("my.program")[0] == "0"
    before = gc.get_freeze_count()
    spare_collections()
    assert gc.get_freeze_count() == before


# Reads what comes, says so on stdout, and sends a byte if it was asked to.
RECEIVER = """
import socket, sys
from types import SimpleNamespace
from ibb.pipeline.spark_worker import acknowledge_at_once

sys.modules["__main__"].__spec__ = SimpleNamespace(name=sys.argv[1])
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as connection:
    while data := connection.recv(100):
        if data == b"answer":
            connection.sendall(b".")
        else:
            acknowledge_at_once()
            print("received", flush=True)
"""
UNACKNOWLEDGED_OFFSET = 24  # in what TCP_INFO returns


def unacknowledged(connection):
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, UNACKNOWLEDGED_OFFSET + 4)
    return struct.unpack_from("I", info, UNACKNOWLEDGED_OFFSET)[0]


def unacknowledged_by(program):
    """Send a program something that it says nothing to; return what was unacknowledged then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        words = [sys.executable, "-c", RECEIVER, program, str(listener.getsockname()[1])]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            connection, _ = listener.accept()
            found = []
            with connection:
                connection.settimeout(60)
                for _ in range(20):  # the system delays none before there were answers
                    connection.sendall(b"answer")
                    assert connection.recv(1) == b"."
                    connection.sendall(b"task")
                    assert process.stdout.readline() == b"received\n"
                    found.append(unacknowledged(connection))
            return found


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot be told")
def test_a_worker_of_spark_acknowledges_a_reader_at_once():
    assert unacknowledged_by("pyspark.daemon") == [0] * 20
    assert any(unacknowledged_by("my.program")), "nothing was delayed to begin with"


@pytest.fixture
def as_worker(monkeypatch):
    main = SimpleNamespace(__spec__=SimpleNamespace(name="pyspark.worker"))
    monkeypatch.setitem(sys.modules, "__main__", main)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize("blocks", [True, False])
def test_connections_stay_as_they_are(family, kind, blocks, as_worker):
    with socket.socket(family, kind) as connection:
        connection.setblocking(blocks)
        socket.setdefaulttimeout(5)
        try:
            acknowledge_at_once()
        finally:
            socket.setdefaulttimeout(None)
        assert os.get_blocking(connection.fileno()) is blocks


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_worker_that_cannot_list_its_descriptors_goes_on(error, as_worker, monkeypatch):
    asked = []

    def refuse(path):
        asked.append(path)
        raise error(path)

    monkeypatch.setattr(os, "scandir", refuse)
    acknowledge_at_once()
    assert asked == ["/proc/self/fd"]


@pytest.mark.parametrize("kind", [BatchReader, PushdownReader, StreamReader])
def test_readers_acknowledge_where_they_arrive(kind, tmp_path, monkeypatch):
    (tmp_path / "binlog-000001.ibb").touch()
    options = SourceOptions.parse({"path": str(tmp_path)})
    sent = pickle.dumps(kind(options, ()))
    arrived = []
    monkeypatch.setattr(spark_worker, "acknowledge_at_once", lambda: arrived.append(True))
    reader = pickle.loads(sent)
    assert (type(reader), reader._options) == (kind, options)
    assert arrived == [True]
