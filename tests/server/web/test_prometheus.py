"""The rules and the dashboard of deploy/: of metrics that there are, and taken by Prometheus."""

import json
import re
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls

from ...docs.reference.metrics_page import families, shown_name
from ..raw_client import RawClient
from ..waiting import answer_of, until

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "ibb.rules.yml"
# By the client library, or only once something has happened.
OTHERS = {
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
}
RARE = {
    *("ibb_reader_acknowledged_timestamp_seconds", "ibb_log_problems_total"),
    "ibb_replica_refused",
}
# For who asks: neither a panel nor an alert is better with them.
ASKED_FOR = {
    *("ibb_build_info", "ibb_start_time_seconds"),
    *("ibb_connections_accepted_total", "ibb_sessions_aborted_total", "ibb_commands_total"),
    *("ibb_semi_sync_replicas", "ibb_semi_sync_wait_seconds_total"),
    *("ibb_relay_skipped_groups_total", "ibb_relay_connects_total", "ibb_gtid_domains"),
    *("ibb_purge_freed_bytes_total", "ibb_purge_age_limit_seconds", "ibb_redo_checkpoints_total"),
    *("ibb_admin_connections_refused_total", "ibb_admin_sessions"),
}


def panels():
    return json.loads((DEPLOY / "grafana" / "ibb.json").read_text())["panels"]


def dashboard_queries():
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def rule_queries():
    return re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)


def names(query):
    return set(re.findall(r"\b(?:ibb|process)_\w+", query))


def test_rules_and_dashboard_speak_of_metrics_that_there_are():
    known = {shown_name(family) for family in families()} | OTHERS
    known |= {f"{family.name}_bucket" for family in families() if family.type == "histogram"}
    used = set().union(*map(names, dashboard_queries() + rule_queries()))
    assert used - known == set()
    assert len(rule_queries()) == RULES.read_text().count("- alert:") > 15


def test_every_metric_is_on_the_dashboard_or_in_an_alert_or_only_for_who_asks():
    shown = " ".join(dashboard_queries() + rule_queries())
    unseen = {shown_name(family) for family in families() if family.name not in shown}
    assert unseen == ASKED_FOR


def test_panels_have_a_place_of_their_own():
    assert [panel["id"] for panel in panels()] == list(range(1, len(panels()) + 1))
    assert len({panel["title"] for panel in panels()}) == len(panels())
    taken = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def promtool(*arguments, text=None):
    return subprocess.run(
        ["promtool", *arguments], input=text, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def prometheus(tmp_path):
    """Return a function that starts a Prometheus which asks an address each second."""
    running = []

    def start(target):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        config = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:8307", target).replace("ibb.rules.yml", str(RULES))
        config = config.replace(
            "scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s"
        )
        (tmp_path / "prometheus.yml").write_text(config)
        arguments = (
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        with (tmp_path / "prometheus.log").open("wb") as log:
            running.append(subprocess.Popen(["prometheus", *arguments], stderr=log))
        return f"http://127.0.0.1:{port}/api/v1"

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.live
async def test_prometheus_takes_all_of_it_from_a_relay_at_work(
    pages, serve, store, measured, prometheus, tmp_path
):
    primary = await serve(store)
    target, figures = measured
    shown = await pages(target, server_id=98)
    shown.server.storage = figures
    shown.server.place = str(tmp_path)
    tls = UpstreamTls.from_config(shown.server.config)
    address = UpstreamAddress("127.0.0.1", primary.port(), "repl", "secret", tls)
    shown.server.upstream = relay = RelayControl(target, shown.server, address, tls)
    relay.start()
    await until(lambda: relay.figures.groups == 10)
    async with (
        await RawClient.logged_in(shown.server) as client,
        httpx.AsyncClient(timeout=20, trust_env=False) as asking,
    ):
        await client.prepare("0-1-9")
        dump = await client.dump(server_id=5)
        await dump.preamble(rotate_checksum=True)
        linted = promtool("check", "metrics", text=(await asking.get(f"{shown.url}/metrics")).text)
        assert (linted.returncode, linted.stderr) == (0, "")
        url = prometheus(shown.url.removeprefix("http://"))

        async def answer(path, **query):
            try:
                found = (await asking.get(f"{url}{path}", params=query)).json()
            except (httpx.TransportError, ValueError):  # it starts
                return None
            assert found["status"] == "success", found
            return found["data"]

        async def rules():
            found = await answer("/rules")
            all_of_it = (
                [rule for group in found["groups"] for rule in group["rules"]] if found else []
            )
            return all_of_it if all(rule["health"] == "ok" for rule in all_of_it) else None

        assert len(await answer_of(rules)) == len(rule_queries())

        async def scraped():
            return (await answer("/query", query='up{job="ibb"} == 1'))["result"]

        await answer_of(scraped)
        for query in dashboard_queries():
            real = query.replace("$__rate_interval", "1m").replace("$instance", ".*")
            await answer("/query", query=real)
            for name in names(query) - RARE:  # without what the query leaves out
                assert (await answer("/query", query=name))["result"], name
    await relay.stop()
