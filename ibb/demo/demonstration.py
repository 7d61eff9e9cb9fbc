"""Which demonstration runs, and what it says in the end."""

from rich.console import Console

from .built_in import run_built_in
from .installation import Installation
from .with_mariadb import run_with_mariadb


def run_demonstration(groups: int, *, built_in: bool) -> bool:
    """
    Run the demonstration; print `equal` or `different` as the last line and return which.

    Args:
        groups: event groups in the workload, at least `workload.GROUPS_MIN`.
        built_in: use the built-in workload and client even where a MariaDB is installed.

    Raises:
        IbbError: a part of it did not start or stopped.
    """
    console = Console()
    installation = None if built_in else Installation.find()
    if installation is None:
        equal = run_built_in(console, groups)
    else:
        equal = run_with_mariadb(console, installation, groups)
    console.print("equal" if equal else "different")
    return equal
