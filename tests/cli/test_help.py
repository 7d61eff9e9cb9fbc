"""Every command's help teaches: what it does, with examples, and what its exit status says."""

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ibb.cli.main import ibb

ROOT = Path(__file__).parent.parent.parent


def commands(group=ibb, path=("ibb",)):
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = {" ".join(path): (path, command) for path, command in commands()}


def examples(command):
    """Return the command lines of *command*'s help, each as its words."""
    text = (command.help or "").replace("\\\n", " ")
    lines = [line.strip().partition("   ")[0] for line in text.splitlines()]
    return [shlex.split(line.partition(" | ")[0]) for line in lines if line.startswith("ibb ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_the_command_at_work(name):
    path, command = COMMANDS[name]
    shown = CliRunner().invoke(ibb, [*path[1:], "--help"], prog_name="ibb").output
    assert [words for words in examples(command) if words[: len(path)] == list(path)]
    assert "ibb " in shown.partition("Options:")[0].partition("\n")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_its_examples_are_there(name):
    for words in examples(COMMANDS[name][1]):
        command = ibb
        arguments = words[1:]
        while isinstance(command, click.Group) and arguments[0] in command.commands:
            command = command.commands[arguments.pop(0)]
        known = {option for given in command.params for option in given.opts}
        assert {word for word in arguments if word.startswith("--")} <= known


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_tells_the_exit_status(name):
    words = " ".join((COMMANDS[name][1].help or "").split()).lower()
    assert "exit status" in words
    assert "2" in words.partition("exit status")[2]


def test_every_option_is_explained():
    for name, (_, command) in COMMANDS.items():
        for given in command.params:
            assert isinstance(given, click.Argument) or given.help, f"{name}: {given.name}"


def test_a_command_imports_no_other():
    """All of them together take half a second of a processor."""
    code = (
        "import sys; from ibb.cli.main import ibb; ibb(['verify', '-h'], standalone_mode=False);"
        "print(sorted(name for name in sys.modules if name.startswith(('ibb.cli.', 'ibb.server'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == str(
        [f"ibb.cli.{name}" for name in ("main", "spark_extra", "spark_options", "verify")]
    )
