#!/opt/ibb/bin/python3
"""
Passwords, certificates and accounts of docker-compose.yml, made once.

    make-secrets SECRETS SERVICES STORE

What is there already stays, so whoever wants passwords of his own puts them into
SECRETS/passwords before the first start. Each service gets what it needs in a volume of its own,
since users with the same number could read each other's folders of one:

    SECRETS/passwords/{root,relay,replica,admin,metrics,grafana}    root's
    SERVICES/{primary,relay,replica1,...}       copies, certificates and keys
    STORE/accounts.toml                         who may log in at the relay

Runs as root. The file `ready` of a service says that all is there. Volumes of before, in which
SECRETS had a folder for each kind of server, are taken over.
"""

import os
import secrets
import shutil
import sys
from pathlib import Path

from ibb.server.connections.certificate import self_signed
from ibb.server.login.accounts import AccountBook, make_account

PASSWORD_BYTES = 24  # of randomness
MARIADB_USER = 3306  # as in containers/mariadb/Dockerfile
IBB_USER = 3307  # as in Dockerfile
PROMETHEUS_USER = 3308  # as in containers/prometheus/Dockerfile
GRAFANA_USER = 472  # as in Grafana's own images
READY = "ready"
SERVICES = {  # its user, and the passwords that it is given
    "primary": (MARIADB_USER, ("root", "relay")),
    "relay": (IBB_USER, ("relay",)),
    "replica1": (MARIADB_USER, ("replica",)),
    "replica2": (MARIADB_USER, ("replica",)),
    "prometheus": (PROMETHEUS_USER, ("metrics",)),
    "grafana": (GRAFANA_USER, ("grafana",)),
}
PASSWORDS = {"admin"}.union(*(names for _, names in SERVICES.values()))
ADMIN_GRANTS = ("BINLOG MONITOR", "BINLOG ADMIN", "REPLICATION MASTER ADMIN", "SLAVE MONITOR",
                "REPLICATION SLAVE ADMIN", "PROCESS", "RELOAD",
                "REPLICATION SLAVE")  # fmt: skip
ACCOUNTS = {
    "replica": ("REPLICATION SLAVE",),
    "admin": ADMIN_GRANTS,
    "metrics": ("BINLOG MONITOR",),
}
LATER_ACCOUNT = "metrics"  # installations of before have none
FOLDERS_BEFORE = {"primary": "mariadb", "relay": "ibb"}  # of SECRETS, with certificate and key


def main(folder: Path, services: Path, store: Path) -> None:
    """Make what is missing; the files that say so come last."""
    made = folder / "passwords"
    _make_folder(made, 0)
    for name in sorted(PASSWORDS):
        if not (made / name).exists():
            _write(made / name, secrets.token_urlsafe(PASSWORD_BYTES).encode(), 0)
    for service, (user, _) in SERVICES.items():
        _make_folder(services / service, user)
    _make_accounts(store / "accounts.toml", made, services)
    for service, (user, names) in SERVICES.items():
        for name in names:
            copy = services / service / f"{name}-password"
            _write_missing(copy, (made / name).read_bytes(), user)
    for service, before in FOLDERS_BEFORE.items():
        _make_certificate(services, service, folder / before)
    for service, (user, _) in SERVICES.items():
        _write_missing(services / service / READY, b"", user)


def _make_certificate(services: Path, host: str, before: Path) -> None:
    """Make a certificate for *host*: its key is the service's alone, all may verify by it."""
    certificate, key = services / host / f"{host}-cert.pem", services / host / f"{host}-key.pem"
    if not key.exists():
        if (before / key.name).exists():
            texts = ((before / certificate.name).read_bytes(), (before / key.name).read_bytes())
        else:
            texts = self_signed(host)
        for path, text in zip((certificate, key), texts, strict=True):
            _write(path, text, SERVICES[host][0])
    for service, (user, _) in SERVICES.items():
        _write_missing(services / service / certificate.name, certificate.read_bytes(), user)


def _make_accounts(path: Path, made: Path, services: Path) -> None:
    """Let in replicas, an administrator and Prometheus; whom somebody took away stays away."""
    wanted = set(ACCOUNTS)
    if path.exists():
        is_handed_out = (services / "prometheus" / f"{LATER_ACCOUNT}-password").exists()
        known = {account.user for account in AccountBook.load(str(path))}
        wanted = set() if is_handed_out else {LATER_ACCOUNT} - known
    if not wanted:
        return
    with AccountBook.changing(str(path)) as book:
        for user in sorted(wanted):
            password = (made / user).read_text().rstrip("\n")
            book.add(make_account(user, "%", password, grants=ACCOUNTS[user], require="SSL"))


def _make_folder(path: Path, user: int) -> None:
    path.mkdir(exist_ok=True)
    path.chmod(0o700)
    os.chown(path, user, user)


def _write_missing(path: Path, data: bytes, user: int) -> None:
    if not path.exists():
        _write(path, data, user)


def _write(path: Path, data: bytes, user: int) -> None:
    """Make a file of mode 0600, whole or not at all."""
    draft = path.with_name(f".{path.name}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    shutil.chown(draft, user, user)
    draft.replace(path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
