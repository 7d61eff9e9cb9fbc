"""Where a group was committed."""

from typing import NamedTuple

from ibb.protocol.gtid import Gtid


class CommitPosition(NamedTuple):
    """
    The answer to a commit.

    Attributes:
        gtid: the group; None for a format description.
        file_no, offset: the end of the binlog behind it.
        lsn: the group is durable once the redo log is synced up to here.
    """

    gtid: Gtid | None
    file_no: int
    offset: int
    lsn: int
