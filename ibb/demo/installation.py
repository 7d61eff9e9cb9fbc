"""
Where the programs of one MariaDB version are, and how they are started.

Either the ones that the machine has installed, or those of another Debian release that lies
unpacked in a folder (scripts/debian-root). The latter are started through that folder's own
dynamic loader, so they see this machine's files and need no privileges, as a chroot would.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SHARE_FOLDERS = ("share/mysql", "share/mariadb")
SYSTEM_TABLES = ("system_tables.sql", "performance_tables.sql", "system_tables_data.sql")


@dataclass(frozen=True)
class Installation:
    """
    The programs of one MariaDB version.

    Attributes:
        base: MariaDB's basedir, `/usr` on Debian.
        launcher: words in front of each program's path; empty for an ordinary installation.
    """

    base: Path
    launcher: tuple[str, ...] = ()

    @classmethod
    def find(cls) -> Self | None:
        """Return what this machine has installed, or None."""
        for name in ("mariadbd", "/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd"):
            program = shutil.which(name)
            if program is not None and shutil.which("mariadb") is not None:
                return cls(Path(program).resolve().parent.parent)
        return None

    @classmethod
    def inside(cls, root: Path) -> Self:
        """
        Return the installation in the unpacked Debian release at *root*.

        Raises:
            FileNotFoundError: there is no dynamic loader in *root*.
        """
        for loader in sorted(root.glob("usr/lib/*-linux-gnu/ld-linux*.so.*")):
            libraries = ":".join(str(folder) for folder in root.glob("usr/lib/*-linux-gnu"))
            return cls(root / "usr", (str(loader), "--library-path", libraries))
        raise FileNotFoundError(f"no dynamic loader in {root}: run scripts/setup")

    def command(self, program: str, *arguments: str) -> list[str]:
        """
        Return the command line that runs *program* (`mariadbd`, `mariadb-binlog`, ...).

        Raises:
            FileNotFoundError: this installation has no such program.
        """
        for folder in ("sbin", "bin"):
            path = self.base / folder / program
            if path.exists():
                return [*self.launcher, str(path), *arguments]
        raise FileNotFoundError(f"no {program} in {self.base}")

    def share(self) -> Path:
        """
        Return the folder that holds the system tables and the error messages.

        Raises:
            FileNotFoundError: the server package is not installed.
        """
        for name in SHARE_FOLDERS:
            folder = self.base / name
            if any(folder.glob(f"*_{SYSTEM_TABLES[0]}")):
                return folder
        raise FileNotFoundError(f"no system tables in {self.base}: is mariadb-server installed?")

    def system_tables(self) -> str:
        """Return the SQL that makes the system tables of a new server: no anonymous users."""
        parts = ["SET @skip_auth_anonymous = 1;\nCREATE DATABASE mysql;\nUSE mysql;\n"]
        for name in SYSTEM_TABLES:
            # 10.11 spells them mysql_*, 11.8 mariadb_*.
            (path,) = self.share().glob(f"m*_{name}")
            parts.append(path.read_text())
        return "".join(parts)

    def version(self) -> str:
        """Return what mariadbd says of itself: program, version and platform."""
        command = self.command("mariadbd", "--no-defaults", "--version")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return " ".join(done.stdout.split())
