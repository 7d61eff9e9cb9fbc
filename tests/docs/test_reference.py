"""The reference names every command, option, statement, variable and metric."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import ibb.storage
from ibb.cli.main import ibb as ibb_command
from ibb.server.config import Config
from ibb.server.sql import ast, parser
from ibb.server.sql.parser import parse_statement
from ibb.server.sql.show_views import VIEWS
from ibb.server.sql.system_variables import SYSTEM_VARIABLES
from ibb.server.statements import privileges_needed, show
from ibb.server.web.gate import COOKIE
from ibb.storage import StoreOptions

from .reference.cli_page import commands
from .reference.options_page import store_meanings
from .reference.pages import FOLDER, PAGES
from .reference.python_page import PARTS, definitions
from .reference.sql_page import flushed, master_options, shows
from .reference.sql_statements import FORMS

WEB = Path(ibb.storage.__file__).parents[1] / "server" / "web"
NO_STATEMENTS = {ast.OnTable, ast.Unsupported}
READ_BY_EYE = {"SHOW", "EXPLAIN", "DESCRIBE"}  # a table of its own; other words for DESC


def text(name):
    return (FOLDER / name).read_text()


def test_each_page_is_made():
    assert {path.name for path in FOLDER.iterdir()} == PAGES.keys()


def test_every_command_is_there_with_every_option():
    page = text("cli.md")
    for path, command in commands():
        section = page.partition(f"## {path}\n")[2].partition("\n## ")[0]
        assert section, path
        if command is ibb_command.commands["serve"]:
            continue  # its options have a page of their own
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}`" in section, (path, parameter.name)


@pytest.mark.parametrize("name", [setting.name for setting in fields(Config)])
def test_every_setting_is_there(name):
    assert f"| `{name}` |" in text("options.md").partition("## Stores")[0]


@pytest.mark.parametrize("name", [option.name for option in fields(StoreOptions)])
def test_every_option_of_a_store_is_there_with_its_meaning(name):
    assert f"| `{name}` |" in text("options.md").partition("## Stores")[2]
    assert len(store_meanings()[name]) > 10


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.syntax)
def test_the_parser_takes_each_statement(form):
    assert type(parse_statement(form.example)) not in NO_STATEMENTS
    assert not form.privilege or form.privilege in privileges_needed._STATEMENTS


def test_every_kind_of_statement_is_there():
    shown = {type(parse_statement(form.example)) for form in FORMS}
    shown |= {ast.Show}
    assert shown | NO_STATEMENTS == set(get_args(ast.Statement))
    words = {form.example.split()[0] for form in FORMS}
    assert set(parser._STARTS) <= words | READ_BY_EYE


def test_every_show_parses():
    words = ("[FROM database]", "[LIKE ... | WHERE ...]", "[LIMIT ...]", "[FOR account]")
    for syntax, _ in shows():
        sql = syntax.strip("`").replace("[account]", "").replace("name", "processlist")
        for word in words:
            sql = sql.replace(word, "")
        assert not isinstance(parse_statement(sql), ast.Unsupported)


def test_every_show_that_has_an_answer_is_there():
    listed = set()
    for syntax, _ in shows():
        sql = syntax.strip("`").split(" [")[0].replace("name", "processlist")
        statement = parse_statement(sql)
        if isinstance(statement, ast.Show):
            listed.add(statement.what)
            assert syntax.split(" [")[0] in text("sql.md")
    assert listed == set(show._ANSWERS) | set(VIEWS)


@pytest.mark.parametrize("name", [*master_options(), *flushed()])
def test_every_option_of_change_master_and_word_of_flush_is_there(name):
    section = text("sql.md").partition("## What FLUSH takes\n")[2].partition("## System")[0]
    assert f"`{name}`" in section


def test_every_metric_in_the_code_is_there():
    page, found = text("metrics.md"), set()
    for path in WEB.glob("*.py"):
        found |= set(re.findall(r'"(ibb_[a-z_]+)"', path.read_text()))
    assert len(found) > 40
    missing = {name for name in found - {COOKIE} if f"`{name}" not in page}
    assert missing == set()


@pytest.mark.parametrize("statement", privileges_needed._STATEMENTS)
def test_every_statement_that_needs_a_privilege_is_there(statement):
    needed = " or ".join(privileges_needed._STATEMENTS[statement])
    shown = [line for line in text("sql.md").splitlines() if line.endswith(f"| {needed} |")]
    # SHOW MASTER STATUS is the older word for BINLOG STATUS, and so on: both are in the table.
    assert any(statement.split()[0] in line for line in shown)


@pytest.mark.parametrize("name", SYSTEM_VARIABLES)
def test_every_system_variable_is_there(name):
    assert f"| `{name}` |" in text("sql.md")


def test_the_python_page_has_what_the_package_offers_each_with_a_docstring():
    named = {node.name for part in PARTS for node in definitions(part)}
    assert set(ibb.storage.__all__) <= named
    page = text("python.md")
    for name in named:
        section = page.partition(f"### {name}\n")[2].partition("\n###")[0]
        assert len(section.split()) > 5, name
