"""A real standalone cluster of two workers: the source, and a job."""

import json
import subprocess
import sys

import pytest

from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import sealed_page
from ibb.storage.verify import verify_directory

from ..conftest import ROOT
from ..published import OPTIONS, made_store
from .spark_cluster import SparkCluster

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow, pytest.mark.timeout(900)]
COUNT = 4000


def mark_odd(file):
    """Put a byte into a file's header page that a check reports, and readers do not mind."""
    image = bytearray(file.read_bytes())
    image[600] = 1
    image[: OPTIONS.page_size] = sealed_page(image[: OPTIONS.page_size])
    file.write_bytes(image)


def test_two_workers_read_and_check_a_directory(tmp_path):
    directory = tmp_path / "binlogs"
    gtids = made_store(directory, COUNT)
    mark_odd(directory / "binlog-000001.ibb")
    (tmp_path / "cluster").mkdir()
    cluster = SparkCluster(tmp_path / "cluster")
    try:
        master = cluster.start(workers=2)
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.jobs.run_on_cluster", master, directory],
            env=cluster.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        cluster.stop()
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["gtids"] == sorted(gtids)
    assert told["executors"] == 2
    assert not told["on_driver"]
    expected = list(verify_directory(OsDisk(), str(directory)))
    assert "header-extra" in {str(one.kind) for one in expected}
    assert told["findings"] == [[str(one.kind), one.text, one.lost] for one in expected]
