"""
A workload of an exact number of event groups, written by several clients at a time.

Each writer has a GTID domain and tables of its own, so that the writers need not wait for each
other and the number of groups is the sum of the domains' sequence numbers.
"""

import subprocess
import threading
from collections.abc import Iterator

from .scratch_server import ScratchServer, ScratchServerError

DATABASE = "demo"
WRITERS = 4
DEFINITION_EVERY = 500  # groups
GROUPS_MIN = 1 + WRITERS * 4
WRITER_SECONDS_MAX = 600.0


def writer_statements(writer: int, groups: int) -> Iterator[str]:
    """Yield the SQL of *writer*: exactly *groups* event groups, one an element."""
    account, journal = f"{DATABASE}.account{writer}", f"{DATABASE}.journal{writer}"
    yield f"CREATE TABLE {account} (id INT PRIMARY KEY, name VARCHAR(40), balance DECIMAL(12,2));"
    yield f"CREATE TABLE {journal} (id INT PRIMARY KEY, at TIMESTAMP(6), note TEXT);"
    yield f"INSERT INTO {account} VALUES (0, 'the bank', 1000000);"
    for number in range(1, groups - 2):
        if number % DEFINITION_EVERY == 0:
            yield f"ALTER TABLE {account} ADD COLUMN extra{number} INT DEFAULT {number};"
        elif number % 10 == 1:
            yield (
                f"BEGIN; INSERT INTO {account} (id, name, balance) VALUES ({number}, 'new', 10);"
                f" UPDATE {account} SET balance = balance - 10 WHERE id = 0;"
                f" INSERT INTO {journal} VALUES ({number}, NOW(6), REPEAT('opened ', 20)); COMMIT;"
            )
        elif number % 10 == 2:
            yield f"UPDATE {account} SET balance = balance + 1 WHERE id = 0;"
        elif number % 10 == 3:
            yield f"DELETE FROM {journal} WHERE id = {number - 2};"
        else:
            yield f"INSERT INTO {journal} VALUES ({number}, NOW(6), 'group {number}');"


class Workload:
    """
    *groups* event groups for *server*, written by `WRITERS` threads, each with a client process.

    Args:
        server: a running primary.
        groups: in all, the definition of the database among them; at least `GROUPS_MIN`.
    """

    def __init__(self, server: ScratchServer, groups: int) -> None:
        assert groups >= GROUPS_MIN
        self._server = server
        self._errors: list[str] = []
        each, more = divmod(groups - 1, WRITERS)
        self._threads = [
            threading.Thread(target=self._write, args=(writer, each + (writer < more)))
            for writer in range(WRITERS)
        ]

    def start(self) -> None:
        """Create the database and let the writers go."""
        self._server.sql(f"CREATE DATABASE {DATABASE};")
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """
        Wait for the writers' end.

        Raises:
            ScratchServerError: a statement failed.
        """
        for thread in self._threads:
            thread.join()
        self.check()

    def check(self) -> None:
        """
        Do nothing, unless a statement has failed.

        Raises:
            ScratchServerError: with the client's words.
        """
        if self._errors:
            raise ScratchServerError(f"the workload failed: {self._errors[0]}")

    def _write(self, writer: int, groups: int) -> None:
        script = [f"SET gtid_domain_id = {writer}, binlog_format = 'ROW';"]
        script += writer_statements(writer, groups)
        done = subprocess.run(
            self._server.client_command("--batch"),
            input="\n".join(script).encode(),
            capture_output=True,
            timeout=WRITER_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            self._errors.append(done.stderr.decode(errors="replace"))
