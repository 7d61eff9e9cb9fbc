"""`ibb demo`: a primary, ibb, a replica, and a check that both sides are equal."""

import sys

import click

from ibb.demo.demonstration import run_demonstration
from ibb.demo.workload import GROUPS_MIN
from ibb.server.log import set_up_log


@click.command()
@click.option(
    "--groups",
    type=click.IntRange(min=GROUPS_MIN),
    default=20_000,
    show_default=True,
    metavar="N",
    help="Event groups to write.",
)
@click.option(
    "--built-in", is_flag=True, help="Use the built-in workload and client, not MariaDB's."
)
def demo(groups: int, *, built_in: bool) -> None:
    """
    Show a whole replication at work in a temporary folder.

    With MariaDB installed: a primary, `ibb serve` as its relay, a replica of the relay, and a
    workload; in the end the checksums of all tables and the GTID positions are compared. Else a
    store, a generated workload and the built-in client, compared group by group.

    \b
      ibb demo --groups 1000000
      ibb demo --built-in

    Prints `equal` (exit status 0) or `different` (1) as the last line. Exit status 2: a part of it
    did not start, or stopped.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    set_up_log(level="warning", shape="text")  # the live view tells the rest
    sys.exit(0 if run_demonstration(groups, built_in=built_in) else 1)
