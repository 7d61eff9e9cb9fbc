"""Passwords that are typed in."""

from __future__ import annotations

import os
import sys

import click


def ask_password(otherwise: str, *, confirm: bool = False) -> str:
    """
    Return a password that a person types in blind.

    Args:
        otherwise: how to give it where there is nobody to ask, for the message.
        confirm: it is typed in twice.

    Raises:
        click.UsageError: there is no terminal.
    """
    if not has_terminal():
        raise click.UsageError(f"there is no terminal to ask for the password: {otherwise}")
    return str(click.prompt("Password", hide_input=True, err=True, confirmation_prompt=confirm))


def has_terminal() -> bool:
    """Tell whether somebody can be asked, whatever standard input is."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return sys.stdin is not None and sys.stdin.isatty()
    return True
