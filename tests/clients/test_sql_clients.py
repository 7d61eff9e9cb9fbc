"""SQL drivers see the same in a relay as in its primary; what differs is listed here."""

import json
import sysconfig
from pathlib import Path

import pytest

from .conftest import run_program
from .drivers import DRIVERS, METHODS, PARSEC, SHA2

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("clients")]

ONLY_IBB = (SHA2, PARSEC)  # login methods that a 10.11 server has not


@pytest.fixture(scope="module", params=sorted(DRIVERS))
def visited(request, site):
    """(driver, what it reports of the primary, what it reports of the relay)."""
    reports = []
    for server in (site.primary, site.ibb):
        places = json.dumps(site.places(server))
        environment = {"MARIADB_PLUGIN_DIR": str(site.plugins)}
        if libraries := DRIVERS[request.param].libraries:
            environment["LD_LIBRARY_PATH"] = str(Path(sysconfig.get_path("platlib")) / libraries)
        program = ("tests.clients.visit", request.param)
        reports.append(json.loads(run_program(*program, stdin=places, **environment)))
    return DRIVERS[request.param], *reports


def of_both(report):
    """Return the parts of a report that a 10.11 can answer."""
    return {
        act: found for act, found in report.items() if not any(word in act for word in ONLY_IBB)
    }


def test_a_driver_sees_what_it_sees_in_the_primary(visited):
    driver, primary, ibb = visited
    wanted, found = of_both(primary), of_both(ibb)
    assert wanted.keys() == found.keys()
    differing = [
        f"{act}: {wanted[act]} from the primary, {found[act]} from ibb"
        for act in wanted
        if wanted[act] != found[act]
    ]
    assert not differing, "\n".join([driver.name, *differing])


def test_a_driver_logs_in_by_every_method_that_it_knows(visited):
    driver, _, ibb = visited
    for method in METHODS:
        logins = [ibb[f"login {method} tls={tls}"] for tls in (None, True, False)]
        if method in driver.methods:
            assert [login.get("rows") for login in logins] == [[repr((method,))]] * 3, logins
            assert "1045" in ibb[f"wrong {method}"]["error"]
        else:
            assert all("error" in login for login in logins), logins


def test_a_driver_speaks_tls_when_it_should(visited):
    driver, _, ibb = visited
    spoken = {tls: "TLSv1" in str(ibb[f"tls={tls}"]["rows"]) for tls in (None, True, False)}
    assert spoken == {None: driver.tls_by_itself, True: True, False: False}
