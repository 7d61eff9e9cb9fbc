"""Each alert of deploy/ fires when it should, not a minute earlier, and says what to do."""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from ibb.server.web.reader_metrics import READERS_MAX

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "ibb.rules.yml"
MONITORING = ROOT / "docs" / "monitoring.md"
HEALTHY_MINUTES = 120


class Case(NamedTuple):
    """
    What makes an alert fire.

    Attributes:
        series: values by name and labels, one a minute (`every`), as promtool writes them.
        fires: the minute from which on it does.
        labels: of the alert, without those of all: severity, and instance "a".
        summary: as people read it.
        ends: a minute at which it is over; None: it stays.
        stays: a minute at which it still fires; None: nothing is said of it.
        every: minutes that each value, and each minute of the above, stands for.
    """

    series: dict[str, str]
    fires: int
    labels: dict[str, str]
    summary: str
    ends: int | None = None
    stays: int | None = None
    every: int = 1


def one(name, **labels):
    """Return a series of instance "a"."""
    labels = {"instance": "a"} | labels
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


READER = {"server_id": "5", "user": "repl", "host": "r"}
QUARTER = 15  # minutes
DAY = 24 * 60 // QUARTER
LAG, DELAY = (one(f"ibb_reader_{name}_seconds", **READER) for name in ("lag", "delay"))
BYTES = one("ibb_reader_lag_bytes", **READER)
LISTED = {one("ibb_readers"): f"2x{5 * DAY}", one("ibb_readers_unlisted"): f"0x{5 * DAY}"}
PROBLEMS = one("ibb_log_problems_total", level="error", event="store_failed")
SYNCS = "ibb_disk_sync_seconds_bucket"
FREE, SIZE = one("ibb_filesystem_free_bytes"), one("ibb_filesystem_size_bytes")
PAGES = one("ibb_page_fifo_bytes")
CASES = {
    "IbbDown": [
        Case({one("up", job="ibb"): "1x5 0x10"}, 7, {"job": "ibb"}, "a does not answer"),
    ],
    "IbbMissing": [
        Case({one("up", job="another"): "1x30"}, 5, {"job": "ibb", "instance": ""},
             "Prometheus asks no ibb at all"),
    ],
    "IbbStoreStopped": [
        Case({one("ibb_not_ready", reason="store_stopped"): "0x5 1x10 0x10"}, 6,
             {"reason": "store_stopped"}, "a has stopped writing", ends=17),
    ],
    "IbbHistoryDamaged": [
        Case({one("ibb_not_ready", reason="history_damaged"): "0x5 1x300 0x10"}, 7,
             {"reason": "history_damaged"}, "a cannot read its files to their end",
             stays=305, ends=307),
    ],
    "IbbDiskFull": [
        Case({one("ibb_not_ready", reason="disk_full"): "0x5 1x10 0x10"}, 7,
             {"reason": "disk_full"}, "a has no room for the next binlog file", ends=17),
    ],
    "IbbDiskFillsUp": [
        Case({FREE: "5x60", SIZE: "100x60"}, 15, {}, "a will run out of room"),
        Case({FREE: "1000-1x400 600x100", SIZE: "1000x500"}, 195, {}, "a will run out of room",
             stays=400, ends=460),
    ],
    "IbbUpstreamStopped": [
        Case({one("ibb_relay_running"): "1x5 0x10 1x10"}, 11, {},
             "The relay of a stands still", ends=17),
    ],
    "IbbUpstreamLost": [
        Case({one("ibb_relay_running"): "1x30", one("ibb_relay_connected"): "1x5 0x10 1x15"}, 8,
             {}, "a has lost its upstream", ends=17),
    ],
    "IbbRelayBehind": [
        Case({one("ibb_relay_lag_seconds"): "0x5 90x10 0x10"}, 11, {},
             "a is 1m 30s behind its upstream", ends=17),
        # A connection that breaks again and again is told of by no alert for a lost upstream.
        Case({one("ibb_relay_lag_seconds"): "0x5 90x2 stale 90 stale stale 90x5 0x10"}, 11, {},
             "a is 1m 30s behind its upstream", ends=19),
    ],
    "IbbReaderBehind": [
        Case({one("ibb_reader_lag_seconds", **READER): "0x5 400x10 0x15"}, 11, READER,
             "Reader 5 (repl@r) is 6m 40s behind", ends=17),
        Case({LAG: "3600x5 4000x300 3600x15", DELAY: "3600x320"}, 11, READER,
             "Reader 5 (repl@r) is 6m 40s behind", stays=305, ends=307),
    ],
    "IbbReaderRefused": [
        Case({one("ibb_replica_refused", server_id="5"): "_x6 1x600 stale"}, 6,
             {"server_id": "5"}, "a had to refuse replica 5: error 1236", stays=605, ends=607),
    ],
    "IbbReaderGone": [
        Case({BYTES: f"0x{2 * DAY} stale", **LISTED}, 2 * DAY + 2, {"server_id": "5"},
             "Replica 5 of a is away", stays=3 * DAY + DAY // 2, ends=4 * DAY + 2, every=QUARTER),
        Case({BYTES: f"0x{2 * DAY} stale _x{DAY} 0x99", **LISTED}, 2 * DAY + 2,
             {"server_id": "5"}, "Replica 5 of a is away", stays=3 * DAY, ends=3 * DAY + 2,
             every=QUARTER),
    ],
    "IbbRetentionShort": [
        Case({one("ibb_purge_removed_files_total"): "0x5 3x100",
              one("ibb_binlog_oldest_group_timestamp_seconds"): "0x110"}, 6, {},
             "a keeps less than a day", ends=70),
    ],
    "IbbPurgeHeldBack": [
        Case({one("ibb_purge_held_back"): "0x5 1x90"}, 66, {},
             "a keeps a file that should have gone"),
    ],
    "IbbPurgeFailed": [
        Case({one("ibb_purge_failures_total"): "0x5 1x40"}, 6, {},
             "a could not remove old files", ends=25),
    ],
    "IbbErrorsLogged": [
        Case({one("ibb_log_lines_total", level=level): "0x5 1x40"}, 6, {"level": level},
             "a has logged errors", ends=20)
        for level in ("error", "critical")
    ],
    "IbbSyncSlow": [
        Case({one(SYNCS, le="0.5", file="redo"): "0x40",
              one(SYNCS, le="1.0", file="redo"): "0+10x40",
              one(SYNCS, le="+Inf", file="redo"): "0+10x40"}, 11, {"file": "redo"},
             "One sync in a hundred takes 995ms on a"),
    ],
    "IbbDiskHangs": [
        Case({one("ibb_disk_sync_waiting_seconds"): "0x5 10 70 130 0x20"}, 8, {},
             "a has waited 2m 10s for one sync", ends=9),
    ],
    "IbbPagesWait": [
        Case({PAGES: "0x5 95x10 80x10", one("ibb_page_fifo_limit_bytes"): "100x30"}, 11, {},
             "a writes its files more slowly than it is given", ends=17),
    ],
    "IbbDiskLies": [
        Case({one("ibb_healed_reads_total"): "0x5 1x100"}, 6, {},
             "a had to read a page twice", ends=70),
    ],
    "IbbLoginsFail": [
        Case({one("ibb_login_failures_total"): "0+120x30"}, 8, {}, "Logins fail on a"),
    ],
    "IbbConnectionsNearLimit": [
        Case({one("ibb_connections"): "10x5 95x10 10x10", one("ibb_connections_limit"): "100x30"},
             11, {}, "a has few places left", ends=17),
    ],
    "IbbSemiSyncSwitchedOff": [
        Case({one("ibb_semi_sync_switched_off_total"): "0x5 1x40"}, 6, {},
             "a has stopped waiting for replicas", ends=20),
        Case({one("ibb_semi_sync_wanted"): "1x400", one("ibb_semi_sync_on"): "1x5 0x300 1x95"}, 6,
             {}, "a has stopped waiting for replicas", stays=305, ends=307),
    ],
}  # fmt: skip
# What is meant, is over, or is too short to help with: minutes (of IbbReaderGone: quarters of an
# hour), and series.
QUIET = {
    "IbbReaderBehind": [
        (60, {LAG: "3600x60", DELAY: "3600x60"}),
        (60, {LAG: "3890x60", DELAY: "3600x60"}),
    ],
    "IbbReaderGone": [
        (DAY, {BYTES: f"0x4 stale _x{DAY}", **LISTED}),  # a tool, for an hour
        (5 * DAY, {BYTES: " ".join([f"0x27 stale _x{DAY - 29}"] * 5), **LISTED}),  # each night
        (3 * DAY, {BYTES.replace('"5"', '"0"'): f"0x{2 * DAY} stale _x{DAY}", **LISTED}),
        # Where not all have lines of their own, one without a line may still be there.
        (3 * DAY, {BYTES: f"0x{2 * DAY} stale _x{DAY}", one("ibb_readers"): f"300x{3 * DAY}",
                   one("ibb_readers_unlisted"): f"100x{3 * DAY}"}),
        # Of a server that is down nobody knows who reads.
        (3 * DAY, {BYTES: f"0x{2 * DAY} stale _x{DAY}", one("ibb_readers"): f"2x{2 * DAY} stale",
                   one("ibb_readers_unlisted"): f"0x{2 * DAY} stale"}),
    ],
    "IbbDiskFillsUp": [  # the first copy of a primary's history, and one after a stop
        (430, {FREE: "480-3x30 390x400", SIZE: "500x430"}),
        (430, {FREE: "480-2x140 200x290", SIZE: "500x430"}),
        (830, {FREE: "480x400 480-3x30 390x400", SIZE: "500x830"}),
    ],
    "IbbSemiSyncSwitchedOff": [
        (60, {one("ibb_semi_sync_wanted"): "0x60", one("ibb_semi_sync_on"): "0x60"}),
    ],
}  # fmt: skip
HEALTHY = {
    one("up", job="ibb"): "1",
    one("ibb_not_ready", reason="store_stopped"): "0",
    one("ibb_not_ready", reason="disk_full"): "0",
    one("ibb_not_ready", reason="upstream_lost"): "1",  # it has an alert of its own, by figures
    FREE: "50",
    SIZE: "100",
    one("ibb_relay_running"): "1",
    one("ibb_relay_connected"): "1",
    one("ibb_relay_lag_seconds"): "60",
    LAG: "3900",
    DELAY: "3600",
    BYTES: "0",
    one("ibb_readers_unlisted"): "0",
    one("ibb_readers"): "2",
    one("ibb_purge_removed_files_total"): "0+1",
    one("ibb_binlog_oldest_group_timestamp_seconds"): "-100000",
    one("ibb_purge_held_back"): "0",
    one("ibb_purge_failures_total"): "7",
    one("ibb_log_lines_total", level="error"): "7",
    one("ibb_log_lines_total", level="warning"): "0+1",
    one(SYNCS, le="0.5", file="redo"): "0+100",
    one(SYNCS, le="+Inf", file="redo"): "0+101",
    one(SYNCS, le="0.5", file="binlog"): "0+50",
    one(SYNCS, le="+Inf", file="binlog"): "0+100",
    one("ibb_disk_sync_waiting_seconds"): "10",
    PAGES: "90",
    one("ibb_page_fifo_limit_bytes"): "100",
    one("ibb_healed_reads_total"): "7",
    one("ibb_login_failures_total"): "0+59",
    one("ibb_connections"): "90",
    one("ibb_connections_limit"): "100",
    one("ibb_semi_sync_switched_off_total"): "7",
    one("ibb_semi_sync_wanted"): "1",
    one("ibb_semi_sync_on"): "1",
}


def rules():
    """Return the text of each alert by its name."""
    found = {}
    for text in RULES.read_text().split("- alert: ")[1:]:
        name, _, rest = text.partition("\n")
        found[name] = rest
    return found


def checks(series, tests, every=1):
    """Return a group of promtool's tests, whose values and times are *every* so many minutes."""
    return {
        "interval": f"{every}m",
        "input_series": [{"series": name, "values": text} for name, text in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{at * every}m", "alertname": name, "exp_alerts": alerts}
            for at, name, alerts in tests
        ],
    }


def fired(name, case):
    """Return the alert of a case: its description is the file's."""
    rule = rules()[name]
    severity = re.search(r"severity: (\w+)", rule)[1]
    labels = {"severity": severity, "instance": "a"} | case.labels
    description = json.loads(re.search(r'description: (".*")', rule)[1])
    return {
        "exp_labels": {key: value for key, value in labels.items() if value},
        "exp_annotations": {"summary": case.summary, "description": description},
    }


def run(folder, groups, every=1):
    path = folder / "test.json"
    content = {"rule_files": [str(RULES)], "evaluation_interval": f"{every}m", "tests": groups}
    path.write_text(json.dumps(content))
    done = subprocess.run(
        ["promtool", "test", "rules", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test_and_says_what_it_means_and_what_to_do():
    found = rules()
    assert set(found) == set(CASES)
    for rule in found.values():
        assert re.search(r"severity: (critical|warning|info)\b", rule)
        assert re.search(r'summary: ".{10,}"', rule)
        assert re.search(r'description: ".{20,}"', rule)


@pytest.mark.live
@pytest.mark.parametrize("every", [1, QUARTER])
def test_alerts_fire_when_they_should(tmp_path, every):
    groups = []
    for name, cases in CASES.items():
        for case in cases:
            if case.every != every:
                continue
            alert = fired(name, case)
            tests = [(case.fires - 1, name, []), (case.fires, name, [alert])]
            if case.stays is not None:
                tests.append((case.stays, name, [alert]))
            if case.ends is not None:
                tests.append((case.ends, name, []))
            groups.append(checks(case.series, tests, every))
    run(tmp_path, groups, every)


@pytest.mark.live
@pytest.mark.parametrize("name", QUIET)
def test_what_is_meant_or_over_fires_none(tmp_path, name):
    every = QUARTER if name == "IbbReaderGone" else 1
    groups = [
        checks(series, [(at, name, []) for at in range(count)], every)
        for count, series in QUIET[name]
    ]
    run(tmp_path, groups, every)


def test_as_many_readers_have_lines_as_the_alert_of_one_that_is_away_goes_by():
    assert rules()["IbbReaderGone"].split("\n")[0].endswith(f" < {READERS_MAX}")


def queries_of_problems():
    """Return the one of docs/monitoring.md and that of the dashboard, of ten minutes."""
    (told,) = re.findall(r"`(increase\(ibb_log_problems_total.*?)`", MONITORING.read_text())
    panels = json.loads((DEPLOY / "grafana" / "ibb.json").read_text())["panels"]
    (shown,) = [
        target["expr"]
        for panel in panels
        for target in panel.get("targets", ())
        if "ibb_log_problems_total" in target["expr"]
    ]
    return told, shown.replace("$__rate_interval", "10m").replace("$instance", "a")


@pytest.mark.live
@pytest.mark.parametrize("which", [0, 1], ids=["docs", "dashboard"])
def test_the_first_error_of_a_kind_is_shown_as_the_next_ones_are(tmp_path, which):
    query = f"count(({queries_of_problems()[which]}))"
    group = checks({PROBLEMS: "_x5 1x40 2x40"}, [])
    group["promql_expr_test"] = [
        {
            "expr": query,
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": 1}] if shown else [],
        }
        for minute, shown in (
            *((4, False), (6, True), (14, True), (20, False)),
            *((40, False), (48, True), (60, False)),
        )
    ]
    run(tmp_path, [group])


@pytest.mark.live
def test_a_server_that_is_well_fires_none(tmp_path):
    series = {name: f"{text}x{HEALTHY_MINUTES}" for name, text in HEALTHY.items()}
    used = set(re.findall(r"\b(?:ibb_\w+|up)\b(?=[{ )\[])", " ".join(rules().values())))
    assert {name.partition("{")[0] for name in HEALTHY} >= used - {
        "ibb_not_ready",
        "ibb_replica_refused",
    }
    minutes = range(0, HEALTHY_MINUTES, 10)
    run(tmp_path, [checks(series, [(at, name, []) for name in CASES for at in minutes])])
