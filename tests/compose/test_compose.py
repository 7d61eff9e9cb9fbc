"""What docker-compose.yml promises, from an empty machine to a new image; in this order."""

import json
import ssl
from os import environ
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from tests.dashboard.board import Window, chromium
from tests.integration.waiting import wait_until

from .stack import HELD, PASSWORD, REPLICAS

NEXT_VERSION = "99.0.0"
# The same program under another number: there is no older release to come from.
NEXT_IMAGE = f"""
FROM %s
USER root
RUN sed -i 's/^Version: .*/Version: {NEXT_VERSION}/' \\
    /opt/ibb/lib/python3*/site-packages/ibb-*.dist-info/METADATA
USER 3307:3307
"""
WORKLOAD = """
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, note TEXT, at TIMESTAMP(6) DEFAULT NOW(6));
CREATE TABLE plain (id INT PRIMARY KEY, data LONGBLOB) ENGINE=Aria;
INSERT INTO orders (note) SELECT MD5(seq) FROM seq_1_to_2000;
INSERT INTO plain SELECT seq, REPEAT(CHAR(65 + seq), 300000) FROM seq_1_to_20;
START TRANSACTION;
UPDATE orders SET note = CONCAT(note, RAND()) WHERE id % 3 = 0;
DELETE FROM orders WHERE id % 7 = 0;
COMMIT;
SET gtid_domain_id = 7;
INSERT INTO orders (note) SELECT UUID() FROM seq_1_to_50;
ALTER TABLE orders ADD KEY (note(20));
"""


def test_what_the_primary_writes_is_on_both_replicas(stack):
    stack.sql("primary", WORKLOAD)
    stack.assert_equal()


def test_a_table_created_on_the_primary_is_on_both_replicas_and_on_the_dashboard(stack):
    created = "CREATE TABLE shop.tea (id INT PRIMARY KEY)"
    ((gtid,),) = stack.sql("primary", f"{created}; SELECT @@last_gtid")
    stack.assert_equal()
    for replica in REPLICAS:
        assert stack.sql(replica, "SHOW TABLES IN shop LIKE 'tea'") == [["tea"]]
    url = f"https://127.0.0.1:{environ['ADMIN_PORT']}"
    with chromium() as browser:
        window = Window(browser, url, ignore_https_errors=True)
        page = window.log_in(f"search/{gtid}", "admin", PASSWORD).page
        page.get_by_role("link", name=gtid, exact=True).click()
        expect(window.table("Events")).to_contain_text(created)
        rows = window.go("readers").table("Readers").locator("tbody tr")
        servers = rows.locator("td:nth-child(4)").filter(has_text="10")
        expect(servers).to_have_count(2)
        for server in ("101", "102"):  # whichever came first
            expect(servers.filter(has_text=server)).to_have_count(1)
        window.close()
    assert window.errors == []


def test_any_password_is_a_password_and_nothing_else(stack):
    options = ("--host=primary", "--user=root", f"--password={PASSWORD}")
    encrypted = ("--ssl-ca=/run/ibb-secrets/mariadb/primary-cert.pem", "--ssl-verify-server-cert")
    (who,) = stack.sql("primary", "SELECT CURRENT_USER()", *options, *encrypted)
    assert who == ["root@%"]
    with pytest.raises(AssertionError, match="denied"):
        stack.sql("primary", "SELECT CURRENT_USER()", *options, "--skip-ssl")
    assert ["mysql"] in stack.sql("primary", "SHOW DATABASES")


@pytest.mark.parametrize("service", HELD)
def test_a_service_holds_its_own_secrets_alone(stack, service):
    seen = ("find", "/run/ibb-secrets", "-type", "f", "-printf", "%f\n")
    names = set(stack.engine("exec", stack.container(service), *seen).split())
    assert names - {"ready", "primary-cert.pem", "relay-cert.pem"} == HELD[service]


def test_the_relay_runs_as_nobody_special(stack):
    relay = stack.container("relay")
    assert stack.engine("exec", relay, "id", "-u").strip() == "3307"
    seen = stack.engine("inspect", relay) + stack.engine("exec", relay, "cat", "/proc/1/cmdline")
    assert "DROP DATABASE" not in seen


def test_nobody_logs_in_at_the_relay_without_encryption(stack):
    options = ("--host=relay", "--port=3307", "--user=admin", f"--password={PASSWORD}")
    with pytest.raises(AssertionError, match=r"TLS is required|denied"):
        stack.sql("replica1", "SHOW BINLOG READERS", *options, "--skip-ssl")
    ca = "--ssl-ca=/run/ibb-secrets/mariadb/relay-cert.pem"
    readers = stack.sql("replica1", "SHOW BINLOG READERS", *options, ca, "--ssl-verify-server-cert")
    assert {line[3] for line in readers} == {"101", "102"}


def wait_until_prometheus_sees_the_relay(stack):
    asked = f"http://127.0.0.1:{environ['PROMETHEUS_PORT']}/api/v1/query?query=up%7Bjob='ibb'%7D"

    def seen():
        with urlopen(asked) as answer:
            found = json.load(answer)["data"]["result"]
        return [one["value"][1] for one in found] == ["1"]

    wait_until(seen, 60, lambda: stack.log("prometheus")[-2000:])


def test_the_host_reaches_the_relay_and_prometheus_sees_it(stack):
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with urlopen(f"https://127.0.0.1:{environ['ADMIN_PORT']}/healthz", context=anybody) as answer:
        assert answer.status == 200
    wait_until_prometheus_sees_the_relay(stack)


@pytest.mark.parametrize("service", [*REPLICAS, "relay"])
def test_a_restart_under_load_loses_nothing(stack, service):
    with stack.steady_writes(f"shop.restart_{service}"):
        stack.engine("restart", "-t", "30", stack.container(service))
        stack.wait_until_healthy(service)
    stack.assert_equal()


def test_a_restart_of_the_primary_loses_nothing(stack):
    stack.engine("restart", "-t", "30", stack.container("primary"))
    stack.wait_until_healthy("primary")
    stack.sql("primary", "INSERT INTO shop.orders (note) VALUES ('after a restart')")
    stack.assert_equal()


def test_prometheus_goes_on_behind_a_restart(stack):
    stack.engine("restart", "-t", "30", stack.container("prometheus"))
    stack.wait_until_healthy("prometheus")
    wait_until_prometheus_sees_the_relay(stack)


def test_a_stop_is_orderly(stack):
    stack.engine("stop", "-t", "30", stack.container("relay"))
    assert stack.inspect("relay", "{{.State.ExitCode}}") == "0"
    assert "server_stopped" in stack.log("relay")
    stack.engine("start", stack.container("relay"))
    stack.wait_until_healthy("relay")
    stack.assert_equal()


def test_kill_9_under_load_loses_nothing(stack):
    with stack.steady_writes("shop.killed"):
        for _ in range(2):
            stack.engine("kill", "-s", "KILL", stack.container("relay"))
            stack.engine("start", stack.container("relay"))
            stack.wait_until_healthy("relay")
            stack.wait_for_rows("shop.killed", more_than=stack.rows("primary", "shop.killed") + 20)
    stack.assert_equal()


@pytest.mark.parametrize(
    ("service", "network"), [("relay", "upstream"), ("replica1", "downstream")]
)
def test_a_network_that_is_cut_and_mended_loses_nothing(stack, service, network):
    with stack.steady_writes(f"shop.cut_{network}"):
        stack.cut(service, network)
        reached = stack.rows("replica1", f"shop.cut_{network}")
        stack.wait_for_rows(f"shop.cut_{network}", more_than=reached + 100)
        assert stack.rows("replica1", f"shop.cut_{network}") <= reached + 1
        stack.mend(service, network)
    stack.assert_equal()


def test_an_image_of_another_version_goes_on_with_the_volume_and_serves_all_history(stack):
    before = stack.inspect("relay", "{{.Image}}")
    assert NEXT_VERSION not in stack.engine("exec", stack.container("relay"), "ibb", "--version")
    stack.engine("build", "-q", "-t", f"{stack.image}-next", "-", text=NEXT_IMAGE % stack.image)
    secrets = stack.secrets()
    for service, held in HELD.items():
        kept = {line.rpartition("/")[2] for line in secrets if f" keys-{service}/" in line}
        assert kept >= held
    stack.compose("up", "-d", "secrets", "relay", IBB_IMAGE=f"{stack.image}-next")
    stack.wait_until_healthy("relay")
    assert stack.secrets() == secrets
    assert stack.inspect("relay", "{{.Image}}") != before
    assert NEXT_VERSION in stack.engine("exec", stack.container("relay"), "ibb", "--version")
    stack.sql("primary", "INSERT INTO shop.orders (note) VALUES ('after an upgrade')")
    stack.assert_equal()
    stack.sql(
        "replica2",
        "STOP SLAVE; DROP DATABASE shop; SET GLOBAL gtid_slave_pos = ''; START SLAVE",
    )
    stack.assert_equal()
