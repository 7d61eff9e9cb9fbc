"""Java is found or a line says what to do; the notebook in examples/ runs."""

import json

import pytest

from ibb.pipeline.session import NoJava, find_java

from .conftest import ROOT
from .published import made_store

COUNT = 200


def java(folder, version):
    folder.mkdir()
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_is_found(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    program = java(tmp_path / "new", "21.0.2")
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    assert find_java() == program
    java(tmp_path / "bin", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == tmp_path / "bin" / "java"


@pytest.mark.parametrize(("version", "number"), [("1.8.0_402", "8"), ("11.0.1", "11")])
def test_an_old_java_is_named(monkeypatch, tmp_path, version, number):
    program = java(tmp_path / "bin", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match=f"{program} is Java {number}. Spark needs Java 17 or newer"):
        find_java()


def test_no_java_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match=r"no java on PATH.*apt-get install default-jre-headless"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="cannot be started"):
        find_java()


@pytest.mark.xdist_group("spark")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_the_notebook_runs(spark, tmp_path, monkeypatch, capsys):
    made_store(tmp_path / "binlogs", COUNT)
    monkeypatch.setenv("IBB_BINLOGS", str(tmp_path / "binlogs"))
    monkeypatch.setenv("IBB_CHECKPOINT", str(tmp_path / "checkpoint"))
    cells = json.loads((ROOT / "examples" / "spark.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["arrived"] == COUNT
    shown = capsys.readouterr().out
    assert "2023-11-14 22:00:00" in shown
    assert "INSERT INTO journal" in shown
