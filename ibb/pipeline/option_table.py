"""Every option of the Spark data source: its name, what it is when left out, and what it means."""

from __future__ import annotations

from typing import Final, NamedTuple


class Option(NamedTuple):
    """
    One option.

    Attributes:
        default: as a user would write it; empty: there is none.
        meaning: in a sentence, for docs/spark.md and for errors.
    """

    default: str
    meaning: str


OPTIONS: Final[dict[str, Option]] = {
    "path": Option("", "directories of binlog files, or files: names, globs, URLs, commas between"),
    "url": Option("", "a server to read instead: mariadb://USER@HOST:PORT, of ibb or MariaDB"),
    "passwordFile": Option("", "a file that holds that user's password, on driver and executors"),
    "passwordEnv": Option("", "an environment variable that holds it instead, likewise"),
    "password": Option("", "the password itself, where neither will do"),
    "tls": Option("", "off, prefer, verify or unverified; else prefer on this machine, or verify"),
    "tlsCa": Option("", "certificates that vouch for the server's"),
    "tlsFingerprint": Option("", "the SHA-256 of the server's certificate instead"),
    "tlsCert": Option("", "our certificate for the server"),
    "tlsKey": Option("", "the key of our certificate"),
    "mode": Option("groups", "what a row is: groups, events, changes, or table with that option"),
    "table": Option("", "changes of this table, database.table, with its own columns"),
    "images": Option("after", "of updates with option table: after, or both for two rows"),
    "columns": Option("", "only these columns, commas between"),
    "startingGtid": Option("earliest", "earliest, latest, or the last GTID had in each domain"),
    "endingGtid": Option("latest", "latest, or the last GTID wanted in each domain"),
    "startingTime": Option("", "only groups committed then or later"),
    "endingTime": Option("", "only groups committed before"),
    "databases": Option("", "only events of these databases, commas between"),
    "tables": Option("", "only events of these tables, each database.table, commas between"),
    "ops": Option("", "only these changes: insert, update, delete, commas between"),
    "nonTransactional": Option("", "tables whose engine cannot roll back: database.table or none"),
    "allowStatements": Option("false", "pass over changes that are logged as statements, not rows"),
    "schemaFile": Option("", "a JSON file that says of tables what the binlog does not"),
    "schemaHistory": Option("false", "take it from the statements of the history that define them"),
    "schemaUrl": Option(
        "", "take it from a MariaDB, from its position on: mariadb://USER@HOST:PORT"
    ),
    "schemaPasswordFile": Option("", "a file of the driver that holds that user's password"),
    "schemaPasswordEnv": Option("", "an environment variable of the driver that holds it instead"),
    "schemaTlsCa": Option("", "certificates that vouch for a server on another machine"),
    "schemaUnchanged": Option("false", "what schemaUrl says holds for all rows of before, too"),
    "noDates": Option("", "of dates that are none: null, error or text; else as the mode has it"),
    "times": Option("", "TIME as duration, microseconds or text; else as the mode has it"),
    "badText": Option("error", "of bytes that are no characters: error or replace"),
    "unknownColumns": Option("error", "of which nobody says enough: error, or bytes as they are"),
    "domains": Option("", "only groups of these GTID domains, commas between"),
    "minPartitions": Option("1", "cut into so many partitions, where there are places for it"),
    "maxPartitionBytes": Option("128m", "cut partitions that are larger than this in the files"),
    "maxGroupsPerTrigger": Option("", "at most so many groups in a micro-batch"),
    "maxBytesPerTrigger": Option(
        "", "at most so many bytes in a micro-batch; a larger group is alone"
    ),
    "failOnDataLoss": Option(
        "true", "stop when groups were purged unread; false: go on behind them"
    ),
    "lease": Option("", "a name: purge waits for what this stream has not read"),
    "leaseUrl": Option("", "the server that keeps the lease, if not url: mariadb://USER@HOST:PORT"),
    "leasePasswordFile": Option("", "a file that holds that user's password"),
    "leasePasswordEnv": Option("", "an environment variable of the driver that holds it instead"),
    "leaseTlsCa": Option("", "certificates that vouch for a server on another machine"),
    "leaseSeconds": Option("604800", "after so many seconds without a finished batch it lapses"),
    "maxEventBytes": Option("64m", "leave the column data of larger events empty"),
}
