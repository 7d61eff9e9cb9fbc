"""How each statement is written, an example of each form, and what it is for."""

from typing import NamedTuple


class Form(NamedTuple):
    """
    One way to write a statement.

    Attributes:
        syntax: in the manner of manuals.
        example: that the parser takes.
        meaning: what it is for.
        privilege: its name in `privileges_needed`, if it needs one.
    """

    syntax: str
    example: str
    meaning: str
    privilege: str = ""


FORMS = (
    Form(
        "SELECT [DISTINCT] expression, ... [FROM table] [WHERE ...] [ORDER BY ...] [LIMIT ...]",
        "SELECT DISTINCT @@server_id FROM information_schema.processlist WHERE 1 LIMIT 1",
        "Expressions, of one table of information_schema at most.",
    ),
    Form("DO expression, ...", "DO SLEEP(0)", "Expressions without a result."),
    Form("SET NAMES charset [COLLATE name]", "SET NAMES utf8mb4", "The session's character set."),
    Form(
        "SET [GLOBAL | SESSION] variable = value, ...",
        "SET GLOBAL max_connections = DEFAULT, @a = 1",
        "Variables of the server, of the session, and of the user; all or nothing.",
    ),
    Form(
        "SET [GLOBAL | SESSION] TRANSACTION ...",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "Kept and shown; there are no transactions.",
    ),
    Form("USE database", "USE information_schema", "The session's database."),
    Form(
        "DESC table [column | pattern]",
        "DESC information_schema.processlist",
        "The columns of a table; DESCRIBE and EXPLAIN are the same word.",
    ),
    Form(
        "SHOW [FULL] COLUMNS | INDEX FROM table [LIKE ... | WHERE ...]",
        "SHOW FULL COLUMNS FROM processlist FROM information_schema",
        "The same, with more.",
    ),
    Form(
        "SHOW BINLOG EVENTS [IN file] [FROM position] [LIMIT [offset,] count]",
        "SHOW BINLOG EVENTS IN 'binlog-000000.ibb' LIMIT 10",
        "Events, a line each.",
        "SHOW BINLOG EVENTS",
    ),
    Form(
        "FLUSH BINARY LOGS [DELETE_DOMAIN_ID = (n, ...)]",
        "FLUSH BINARY LOGS DELETE_DOMAIN_ID = (77)",
        "Go on in a new file; forget domains that no file holds any more.",
        "FLUSH",
    ),
    Form(
        "FLUSH HOSTS | PRIVILEGES | SSL | STATUS | ...",
        "FLUSH HOSTS",
        "HOSTS lets addresses in again that failed to log in; the others do nothing.",
        "FLUSH",
    ),
    Form(
        "PURGE BINARY LOGS TO file | BEFORE moment",
        "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY",
        "Remove old files that nobody needs.",
        "PURGE",
    ),
    Form("RESET MASTER", "RESET MASTER", "Delete all groups and begin anew.", "RESET"),
    Form(
        "CREATE [OR REPLACE] BINLOG LEASE name FOR position [EXPIRE seconds | EXPIRE NEVER]",
        "CREATE OR REPLACE BINLOG LEASE spark FOR '0-1-5' EXPIRE 86400",
        "Keep what lies behind a GTID position.",
        "BINLOG LEASE",
    ),
    Form(
        "DROP BINLOG LEASE [IF EXISTS] name",
        "DROP BINLOG LEASE IF EXISTS spark",
        "Keep it no longer.",
        "BINLOG LEASE",
    ),
    Form(
        "CHANGE MASTER TO option = value, ...",
        "CHANGE MASTER TO MASTER_HOST = 'db2', MASTER_USER = 'repl'",
        "The upstream that the relay follows when it is started next.",
        "CHANGE MASTER",
    ),
    Form("START SLAVE", "START SLAVE", "Let the relay follow its upstream.", "START SLAVE"),
    Form("STOP SLAVE", "STOP SLAVE", "Let it stop.", "STOP SLAVE"),
    Form(
        "RESET SLAVE [ALL]",
        "RESET SLAVE ALL",
        "Forget where the relay was in its upstream; with ALL the upstream too.",
        "RESET",
    ),
    Form(
        "KILL [CONNECTION | QUERY] id | USER name",
        "KILL USER nobody",
        "End connections or what they do; CONNECTION ADMIN for those of others.",
    ),
    Form("START TRANSACTION [READ ONLY]", "START TRANSACTION", "For connectors; it is empty."),
    Form("BEGIN [WORK]", "BEGIN", "The same."),
    Form("COMMIT [AND CHAIN]", "COMMIT", "The same."),
    Form("ROLLBACK [TO name]", "ROLLBACK", "The same."),
    Form("SAVEPOINT name", "SAVEPOINT a", "The same."),
    Form("RELEASE SAVEPOINT name", "RELEASE SAVEPOINT a", "The same."),
    Form("PREPARE name FROM text", "PREPARE one FROM 'SELECT ? + 1'", "A statement for later."),
    Form(
        "EXECUTE name [USING value, ...]",
        "EXECUTE one USING 41",
        "That statement with values; EXECUTE IMMEDIATE text needs no name.",
    ),
    Form("DEALLOCATE PREPARE name", "DEALLOCATE PREPARE one", "Forget it; DROP PREPARE, too."),
    Form("UNLOCK TABLES", "UNLOCK TABLES", "Nothing; clients send it."),
)
