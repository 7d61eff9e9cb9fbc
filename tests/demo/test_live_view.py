"""The live view on a terminal and elsewhere."""

import io

from rich.console import Console

from ibb.demo.live_view import LiveView


def shown(*, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100)
    with LiveView(console, ("store", "client"), 50) as view:
        view.show({"store": 9, "client": 4})
        view.show({"store": 50, "client": 48}, last=True)
    return out.getvalue()


def test_elsewhere_it_prints_plain_lines_and_always_the_last():
    (line,) = shown(terminal=False).splitlines()
    assert line.endswith(" s   store 50   client 48")
    assert "\x1b" not in line


def test_on_a_terminal_it_draws_a_bar_for_each_place():
    out = shown(terminal=True)
    assert "50/50" in out
    assert "48/50" in out
