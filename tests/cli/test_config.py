"""`ibb config check` as a process; SIGHUP with another file of settings; what systemd is told."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from .process import IBB, run


def test_findings_are_lines_and_status_1(tmp_path):
    path = tmp_path / "ibb.toml"
    path.write_text("server_id = 5\nreadonly = true\n")
    done = run("config", "check", path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{path}:2: unknown setting: readonly (did you mean read_only?)\n"
    path.write_text("server_id = 5\n")
    done = run("config", "check", path)
    assert (done.returncode, done.stdout) == (0, f"{path}: nothing wrong\n")
    assert run("config", "check", tmp_path / "missing").returncode == 2


def test_advice_is_told_and_prevents_no_start(tmp_path):
    secret, path = tmp_path / "upstream-password", tmp_path / "ibb.toml"
    secret.write_text("sesame\n")
    secret.chmod(0o644)
    path.write_text(f'upstream = "mariadb://repl@h"\nupstream_password_file = "{secret}"\n')
    done = run("config", "check", path)
    assert done.returncode == 0
    told, last = done.stdout.splitlines()
    assert told.startswith(f"{path}:2: advice: upstream_password_file: {secret} is open to others")
    assert last == f"{path}: nothing wrong"


def test_the_unit_is_for_options_that_there_are():
    unit = (Path(__file__).parents[2] / "deploy" / "ibb.service").read_text()
    assert "Type=notify" in unit
    commands = re.findall(r"^Exec\w+=\S*/ibb (.*)$", unit, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        words = command.split()
        shown = run(*[word for word in words if re.fullmatch("[a-z]+", word)], "--help").stdout
        assert all(word in shown for word in words if word.startswith("--"))


def test_systemd_is_told_of_start_reload_and_end(tmp_path):
    settings = tmp_path / "ibb.toml"
    settings.write_text('log_format = "json"\nlisten = "127.0.0.1:0"\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        process = subprocess.Popen(
            [*IBB, "serve", str(tmp_path / "store"), "--config", str(settings)],
            env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert manager.recv(4096).startswith(b"READY=1\nSTATUS=serving ")
            settings.write_text(settings.read_text() + "max_connections = 9\npage_size = 4096\n")
            process.send_signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(4096).startswith(b"READY=1")
            process.send_signal(signal.SIGTERM)
            assert manager.recv(4096) == b"STOPPING=1"
            lines = process.communicate(timeout=60)[1].splitlines()
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0
    told = {line["event"]: line for line in map(json.loads, filter(is_json, lines))}
    assert told["reloaded"]["settings"] == ["max_connections"]
    assert told["settings_need_restart"]["settings"] == ["page_size"]


def is_json(line):
    return line.startswith("{")
