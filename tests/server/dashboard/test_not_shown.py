"""What is left of overviews and files for who lacks privileges."""

import asyncio

import pytest

from ibb.server.dashboard.alerts import ERROR, WARNING, Alert
from ibb.server.dashboard.file_table import FileTable
from ibb.server.dashboard.not_shown import (
    ALL_NOT_SHOWN,
    READERS,
    UPSTREAM,
    not_shown_to,
    shown_files,
    shown_overview,
)
from ibb.server.dashboard.overview import Observer
from ibb.server.login.accounts import make_account


@pytest.mark.parametrize(
    ("grants", "not_shown"),
    [
        (["BINLOG MONITOR"], {UPSTREAM, READERS}),
        (["SLAVE MONITOR"], {READERS}),
        (["REPLICATION MASTER ADMIN"], {UPSTREAM}),
        (["SUPER"], set()),
        (["ALL PRIVILEGES"], set()),
    ],
)
def test_what_an_account_is_not_shown_follows_from_its_grants(grants, not_shown):
    found = not_shown_to(make_account("one", "%", "secret", grants))
    assert found == not_shown
    assert found in ALL_NOT_SHOWN


async def test_alerts_stay_and_what_they_tell_does_not(server):
    alerts = [
        Alert(ERROR, "reader", "server 3 was refused"),
        Alert(ERROR, "reader", "server 4 was refused"),
        Alert(WARNING, "purge", "a file should be gone, but server 3 needs it"),
        Alert(WARNING, "lease", "lease 'archive' has lapsed"),
    ]
    found = await asyncio.to_thread(Observer(server, list).look)
    found = found._replace(alerts=alerts)
    assert shown_overview(found, frozenset()) == found
    shown = shown_overview(found, frozenset({READERS})).alerts
    assert [(alert.level, alert.about) for alert in shown] == [
        (ERROR, "reader"), (WARNING, "purge"), (WARNING, "lease"),
    ]  # fmt: skip
    assert all("REPLICATION MASTER ADMIN" in alert.text for alert in shown[:2])
    assert shown[2] == alerts[3]


async def test_files_are_shown_without_those_who_need_them(server, reading):
    await reading("0-1-1", server_id=4711, groups=9)
    page = await asyncio.to_thread(FileTable(server).page, 0, 10)
    assert "4711" in str(page)
    assert shown_files(page, frozenset({UPSTREAM})) == page
    shown = shown_files(page, frozenset({READERS}))
    assert "4711" not in str(shown)
    assert [row["Log_name"] for row in shown.rows] == [row["Log_name"] for row in page.rows]
