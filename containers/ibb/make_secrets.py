#!/opt/ibb/bin/python3
"""
Passwords, certificates and accounts of docker-compose.yml, made once.

    make-secrets SECRETS STORE

What is there already stays, so whoever wants passwords of his own puts them into
SECRETS/passwords before the first start. Each server gets a folder that it alone reads:

    SECRETS/passwords/{root,relay,replica,admin,grafana}    root's
    SECRETS/{mariadb,ibb,prometheus,grafana}    copies, certificates and keys
    STORE/accounts.toml                             who may log in at the relay

Runs as root. The file `ready` in a server's folder says that all is there.
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
COPIES = {
    "mariadb": (MARIADB_USER, ("root", "relay", "replica", "admin")),
    "ibb": (IBB_USER, ("relay",)),
    "prometheus": (PROMETHEUS_USER, ("admin",)),
    "grafana": (GRAFANA_USER, ("grafana",)),
}
ADMIN_GRANTS = ("BINLOG MONITOR", "BINLOG ADMIN", "REPLICATION MASTER ADMIN", "SLAVE MONITOR",
                "REPLICATION SLAVE ADMIN", "PROCESS", "RELOAD")  # fmt: skip


def main(folder: Path, store: Path) -> None:
    """Make what is missing; the files that say so come last."""
    made = folder / "passwords"
    _make_folder(made, 0)
    for _, names in COPIES.values():
        for name in names:
            if not (made / name).exists():
                _write(made / name, secrets.token_urlsafe(PASSWORD_BYTES).encode(), 0)
    for owner, (user, names) in COPIES.items():
        _make_folder(folder / owner, user)
        for name in names:
            _write_missing(folder / owner / f"{name}-password", (made / name).read_bytes(), user)
    _make_certificate(folder, "primary", "mariadb")
    _make_certificate(folder, "relay", "ibb")
    if not (store / "accounts.toml").exists():
        _make_accounts(store / "accounts.toml", made)
    for owner, (user, _) in COPIES.items():
        _write_missing(folder / owner / READY, b"", user)


def _make_certificate(folder: Path, host: str, owner: str) -> None:
    """Make a certificate for *host*: its key is the owner's alone, all may verify by it."""
    certificate, key = folder / owner / f"{host}-cert.pem", folder / owner / f"{host}-key.pem"
    if not key.exists():
        texts = self_signed(host)
        for path, text in zip((certificate, key), texts, strict=True):
            _write(path, text, COPIES[owner][0])
    for name, (user, _) in COPIES.items():
        _write_missing(folder / name / certificate.name, certificate.read_bytes(), user)


def _make_accounts(path: Path, made: Path) -> None:
    """Let replicas and an administrator in."""
    with AccountBook.changing(str(path)) as book:
        for user, grants in (("replica", ("REPLICATION SLAVE",)), ("admin", ADMIN_GRANTS)):
            password = (made / user).read_text().rstrip("\n")
            book.add(make_account(user, "%", password, grants=grants, require="SSL"))


def _make_folder(path: Path, user: int) -> None:
    path.mkdir(mode=0o700, exist_ok=True)
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
