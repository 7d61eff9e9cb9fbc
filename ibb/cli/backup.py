"""`ibb backup`: a copy of a directory that may be in use."""

from __future__ import annotations

import click

from ibb.storage.directory_backup import back_up_directory
from ibb.storage.file_name import binlog_name
from ibb.storage.os_disk import OsDisk


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.argument("target", type=click.Path(file_okay=False))
def backup(directory: str, target: str) -> None:
    """
    Copy the binlog in DIRECTORY, which may be in use, into the new or empty directory TARGET.

    The copy holds everything that was durable when it began, to the byte, and is a directory that
    `ibb serve` can go on with. The server is not asked, and what it purges meanwhile is copied all
    the same. Until the copy is whole a file `backup.unfinished` in it keeps everybody off. Leases
    are not copied. Every page is checked: what is damaged is no backup.

    \b
      ibb backup /var/lib/ibb/binlogs /backups/binlogs-$(date +%F)

    Prints the end of the copy and its GTID position. Exit status 0; 2: there is no whole copy.
    docs/backup.md has the way back.
    """  # noqa: D301 - click's own sign for lines that stay as they are
    done = back_up_directory(OsDisk(), directory, target)
    end = f"{binlog_name(done.end.file_no)}:{done.end.offset}"
    click.echo(f"{target}: up to {end}, GTID position '{done.state.position()}'")
