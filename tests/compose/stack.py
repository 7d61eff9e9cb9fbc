"""A compose stack, driven as a person would: `compose`, and the engine's own commands."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.compare import gtids
from tests.integration.waiting import wait_until

COMMAND_SECONDS = 300.0
HEALTHY_SECONDS = 90.0
CATCH_UP_SECONDS = 90.0
REPLICAS = ("replica1", "replica2")
# What breaks out of quotes, of shells and of option files, if it can.
PASSWORD = """'"\\$(id)`;DROP DATABASE mysql;--# é"""
PASSWORDS = ("root", "relay", "replica", "admin", "metrics")
HELD = {  # by each service, beside certificates
    "primary": {"root-password", "relay-password", "primary-key.pem"},
    "relay": {"relay-password", "relay-key.pem"},
    "replica1": {"replica-password"},
    "replica2": {"replica-password"},
    "prometheus": {"metrics-password"},
}


class Stack:
    """
    The services of one project.

    Args:
        engine: docker or podman.
        command: what reads docker-compose.yml; the project's name is in the environment.
    """

    def __init__(self, engine: str, command: list[str]) -> None:
        self.engine_name = engine
        self._command = command
        self.project = os.environ["COMPOSE_PROJECT_NAME"]
        self.image = os.environ["IBB_IMAGE"]

    def compose(self, *arguments: str, **environment: str) -> str:
        """Run one command of compose."""
        return _run([*self._command, *arguments], environment=environment)

    def engine(self, *arguments: str, text: str = "") -> str:
        """Run one command of the engine."""
        return _run([self.engine_name, *arguments], text=text)

    def log(self, service: str) -> str:
        """Return what a service's container has logged, to either of its outputs."""
        return _run([self.engine_name, "logs", self.container(service)], errors_too=True)

    def container(self, service: str) -> str:
        """Return the id of a service's container."""
        labels = {"project": self.project, "service": service}
        filters = [f"--filter=label=com.docker.compose.{key}={labels[key]}" for key in labels]
        (found,) = self.engine("ps", "-aq", *filters).split()
        return found

    def inspect(self, service: str, template: str) -> str:
        """Return what the engine knows of a service's container."""
        return self.engine("inspect", "--format", template, self.container(service)).strip()

    def choose_passwords(self) -> None:
        """Put passwords where a person puts his own, before the first start."""
        script = (
            'mkdir -m 700 /secrets/passwords; for n; do printf %s "$0" >/secrets/passwords/$n; done'
        )
        name = f"{self.project}_secrets"
        labels = [f"{of}.compose.project={self.project}" for of in ("com.docker", "io.podman")]
        labels.append("com.docker.compose.volume=secrets")  # so that it goes with the others
        self.engine("volume", "create", *(f"--label={label}" for label in labels), name)
        volume = f"{name}:/secrets"
        options = ["run", "--rm", "-u", "0", "-v", volume, "--entrypoint", "sh", self.image]
        self.engine(*options, "-c", script, PASSWORD, *PASSWORDS)

    def secrets(self) -> list[str]:
        """Return the hashes and the names of all files of secrets, and of the accounts."""
        names = ["secrets", *(f"keys-{service}" for service in HELD), "store"]
        mounts = [f"--volume={self.project}_{name}:/volumes/{name}:ro" for name in names]
        places = "secrets keys-* store/accounts.toml"
        script = f"cd /volumes && find {places} -type f -exec sha256sum {{}} +"
        options = ["run", "--rm", "-u", "0", *mounts, "--entrypoint", "sh", self.image]
        return sorted(self.engine(*options, "-c", script).splitlines())

    def sql(self, service: str, statements: str, *options: str) -> list[list[str]]:
        """Run *statements* as the administrator of a MariaDB service; return the rows."""
        client = ["mariadb", "--batch", "--skip-column-names", *options]
        done = self.engine("exec", "-i", self.container(service), *client, text=statements)
        return [line.split("\t") for line in done.splitlines()]

    def is_healthy(self, service: str) -> bool:
        """Ask the health check now: podman without systemd never does by itself."""
        if self.engine_name == "docker":
            return self.inspect(service, "{{.State.Health.Status}}") == "healthy"
        command = [self.engine_name, "healthcheck", "run", self.container(service)]
        return subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS).returncode == 0

    def wait_until_healthy(self, service: str) -> None:
        wait_until(lambda: self.is_healthy(service), HEALTHY_SECONDS, service)

    def cut(self, service: str, network: str) -> None:
        """Take a service off a network."""
        self.engine("network", "disconnect", f"{self.project}_{network}", self.container(service))

    def mend(self, service: str, network: str) -> None:
        """Bring it back, under its name."""
        name = f"{self.project}_{network}"
        self.engine("network", "connect", "--alias", service, name, self.container(service))

    @contextmanager
    def steady_writes(self, table: str) -> Iterator[None]:
        """Let the primary commit small transactions, one after the other, meanwhile."""
        self.sql("primary", f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
        command = [self.engine_name, "exec", "-i", self.container("primary"), "mariadb"]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        assert client.stdin is not None
        stopping = threading.Event()

        def write() -> None:
            with client.stdin:
                while not stopping.wait(0.01):
                    client.stdin.write(f"INSERT INTO {table} (v) VALUES (REPEAT('v', 500));\n")
                    client.stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.wait_for_rows(table, more_than=0)
            yield
        finally:
            stopping.set()
            writer.join()
            assert client.wait(COMMAND_SECONDS) == 0

    def rows(self, service: str, table: str) -> int:
        """Return how many rows a table has."""
        return int(self.sql(service, f"SELECT COUNT(*) FROM {table}")[0][0])

    def wait_for_rows(self, table: str, *, more_than: int) -> None:
        """Wait for the primary to have committed more."""
        wait_until(lambda: self.rows("primary", table) > more_than, CATCH_UP_SECONDS, table)

    def assert_equal(self) -> None:
        """Fail unless both replicas end where the primary does and hold the same in every table."""
        self.wait_for_replicas()
        tables = self.sql(
            "primary",
            "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables"
            " WHERE table_schema = 'shop' AND table_type = 'BASE TABLE'",
        )
        asked = "CHECKSUM TABLE " + ", ".join(name for (name,) in tables)
        wanted = self.sql("primary", asked)
        assert wanted
        for replica in REPLICAS:
            assert self.sql(replica, asked) == wanted

    def wait_for_replicas(self) -> None:
        """Wait until both replicas end where the primary does now."""
        ((position,),) = self.sql("primary", "SELECT @@gtid_binlog_pos")
        for replica in REPLICAS:
            self.wait_for_position(replica, position)

    def wait_for_position(self, replica: str, position: str) -> None:
        """Wait until a replica has applied exactly *position*."""

        def shown() -> str:
            return self.engine(
                "exec", self.container(replica), "mariadb", "-e", "SHOW SLAVE STATUS\\G"
            )

        def reached() -> bool:
            ((has,),) = self.sql(replica, "SELECT @@gtid_slave_pos")
            return gtids(has) == gtids(position)

        wait_until(reached, CATCH_UP_SECONDS, shown)


def _run(
    command: list[str],
    *,
    text: str = "",
    environment: dict[str, str] | None = None,
    errors_too: bool = False,
) -> str:
    """Run a program to its end; return what it printed."""
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr * errors_too
