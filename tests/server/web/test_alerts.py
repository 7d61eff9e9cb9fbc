"""Each alert of deploy/ fires when it should, not a minute earlier, and says what to do."""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "ibb.rules.yml"
HEALTHY_MINUTES = 120


class Case(NamedTuple):
    """
    What makes an alert fire.

    Attributes:
        series: values by name and labels, one a minute, as promtool writes them.
        fires: the minute from which on it does.
        labels: of the alert, without those of all: severity, and instance "a".
        summary: as people read it.
        ends: a minute at which it is over; None: it stays.
    """

    series: dict[str, str]
    fires: int
    labels: dict[str, str]
    summary: str
    ends: int | None = None


def one(name, **labels):
    """Return a series of instance "a"."""
    labels = {"instance": "a"} | labels
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


READER = {"server_id": "5", "user": "repl", "host": "r"}
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
             {"reason": "history_damaged"}, "a cannot read its files to their end", ends=307),
    ],
    "IbbDiskFull": [
        Case({one("ibb_not_ready", reason="disk_full"): "0x5 1x10 0x10"}, 7,
             {"reason": "disk_full"}, "a has no room for the next binlog file", ends=17),
    ],
    "IbbDiskFillsUp": [
        Case({FREE: "5x60", SIZE: "100x60"}, 15, {}, "a will run out of room"),
        Case({FREE: "100-0.2x60", SIZE: "100x60"}, 16, {}, "a will run out of room"),
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
    ],
    "IbbReaderRefused": [
        Case({one("ibb_dumps_refused_total"): "0x5 1x40"}, 6, {},
             "a had to refuse a reader: error 1236", ends=20),
    ],
    "IbbReaderGone": [
        Case({one("ibb_readers"): "3x5 2x20 3x10"}, 16, {},
             "a has fewer readers than within the last hour", ends=27),
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
    one("ibb_reader_lag_seconds", **READER): "300",
    one("ibb_readers"): "2",
    one("ibb_dumps_refused_total"): "7",
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
}


def rules():
    """Return the text of each alert by its name."""
    found = {}
    for text in RULES.read_text().split("- alert: ")[1:]:
        name, _, rest = text.partition("\n")
        found[name] = rest
    return found


def checks(series, tests):
    """Return a group of promtool's tests."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": text} for name, text in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": alerts}
            for minute, name, alerts in tests
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


def run(folder, groups):
    path = folder / "test.json"
    path.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": groups})
    )
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
def test_alerts_fire_when_they_should(tmp_path):
    groups = []
    for name, cases in CASES.items():
        for case in cases:
            alert = fired(name, case)
            tests = [(case.fires - 1, name, []), (case.fires, name, [alert])]
            if case.ends is not None:
                tests.append((case.ends, name, []))
            groups.append(checks(case.series, tests))
    run(tmp_path, groups)


@pytest.mark.live
def test_a_server_that_is_well_fires_none(tmp_path):
    series = {name: f"{text}x{HEALTHY_MINUTES}" for name, text in HEALTHY.items()}
    used = set(re.findall(r"\b(?:ibb_\w+|up)\b(?=[{ )\[])", " ".join(rules().values())))
    assert {name.partition("{")[0] for name in HEALTHY} >= used - {"ibb_not_ready"}
    minutes = range(0, HEALTHY_MINUTES, 10)
    run(tmp_path, [checks(series, [(at, name, []) for name in CASES for at in minutes])])
