"""What two servers answer to one statement, in text and prepared, side by side."""

from dataclasses import replace
from typing import NamedTuple

from .statement_client import Answer, Refused, Rows, StatementClient
from .statement_list import Listed


class Pair(NamedTuple):
    """Two answers, as far as they are to be equal."""

    sql: str
    real: object
    ours: object

    @property
    def equal(self) -> bool:
        """Whether they are."""
        return self.real == self.ours

    def __str__(self) -> str:
        return f"{self.sql}\n  MariaDB: {_text(self.real)}\n  ibb:     {_text(self.ours)}"


def ask_in_text(listed: Listed, real: StatementClient, ours: StatementClient) -> Pair:
    """Send a statement as COM_QUERY to both."""
    return Pair(listed.sql, *(_in_text(listed, client) for client in (real, ours)))


def ask_prepared(listed: Listed, real: StatementClient, ours: StatementClient) -> Pair:
    """
    Prepare a statement at both, and execute it.

    An error is compared, not whether it came at the first step or at the second.
    """
    return Pair(listed.sql, *(_prepared(listed, client) for client in (real, ours)))


def _in_text(listed: Listed, client: StatementClient) -> list[object]:
    return [_compared(answer, listed.mark) for answer in client.query(_for(client, listed))]


def _prepared(listed: Listed, client: StatementClient) -> list[object]:
    prepared = client.prepare(_for(client, listed))
    if isinstance(prepared, Refused):
        return [prepared]
    answer = client.execute(prepared)
    client.close_statement(prepared)
    if isinstance(answer, Refused):
        return [answer]
    return [prepared.parameters, prepared.columns, _compared(answer, listed.mark)]


def _for(client: StatementClient, listed: Listed) -> str:
    return listed.sql.replace("{file}", client.oldest_file)


def _compared(answer: Answer, mark: str) -> Answer:
    if isinstance(answer, Rows) and mark:
        return replace(answer, rows=[None] * len(answer.rows) if mark == "~" else [])
    return answer


def _text(answers: object) -> str:
    assert isinstance(answers, list)
    return "\n           ".join(map(_line, answers))


def _line(answer: object) -> str:
    if isinstance(answer, Rows):
        columns = "\n             ".join(map(str, answer.columns))
        return f"{columns}\n             {answer.rows} {answer.status:#x} {answer.warnings}"
    return str(answer)
