"""A Spark session for one job: begun for it, ended behind it, its failures told in a line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ibb.pipeline.errors import OptionError
from ibb.pipeline.session import session_on

from .errors import JobFailed, told_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
QUIET: Final = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}


@contextmanager
def job_session(name: str, master: str, settings: Iterable[str] = ()) -> Iterator[SparkSession]:
    """
    Begin a session, and end it when the job is done.

    Args:
        name: of the job, shown in Spark's pages.
        master: as Spark has it.
        settings: of Spark, each NAME=VALUE.

    Raises:
        NoJava: there is no Java that Spark could run on.
        OptionError: a setting is none.
        JobFailed: something went wrong on the cluster.
    """
    given = dict(QUIET)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise OptionError("--conf", f"'{setting}' is not spark.NAME=VALUE")
        given[key] = value
    session = session_on(master, name, given)
    from py4j.protocol import Py4JError  # noqa: PLC0415 - the session has told if it is not there
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    try:
        yield session
    except (PySparkException, Py4JError) as error:
        raise JobFailed(told_by(str(error))) from error
    finally:
        session.stop()
