"""What a column's definition means under the modes of the session that gives it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .column_types import base_type

if TYPE_CHECKING:
    from .column_definition import ColumnDefinition
    from .session_modes import SessionModes


def as_meant(definition: ColumnDefinition, modes: SessionModes) -> ColumnDefinition:
    """Return *definition* as one under which nothing is left to *modes*."""
    definition = replace(definition, type_text=_meant_type(definition.type_text, modes))
    if modes.empty_is_null and definition.is_quoted and not definition.default:
        definition = replace(definition, default=None, has_default=False)
    if modes.bytewise and definition.is_quoted and not (definition.default or "").isascii():
        unsaid = definition.computed or "its DEFAULT is of bytes, in no character set"
        definition = replace(definition, computed=unsaid)
    is_plain = modes.explicit_timestamps or definition.says_null
    if is_plain or base_type(definition.type_text) != "timestamp":
        return definition
    unsaid = "" if definition.has_default else "explicit_defaults_for_timestamp is off"
    return replace(definition, nullable=False, computed=definition.computed or unsaid)


def _meant_type(text: str, modes: SessionModes) -> str:
    name = base_type(text)
    meant = dict(modes.types).get(name, "")
    if not meant or ("(" in text and name in ("number", "blob")):  # of a size they are as ever
        return text
    return meant + text.removeprefix(name)
