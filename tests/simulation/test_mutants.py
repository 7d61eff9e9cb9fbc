"""The mutants can be made, and those that are called harmless are some of them."""

import ast

from .mutants import make_mutants
from .mutate import STORAGE, harmless_names

MUTANTS = list(make_mutants(STORAGE))


def test_each_is_another_program() -> None:
    for mutant in MUTANTS:
        assert mutant.source != mutant.path.read_text(), mutant.name
        compile(mutant.source, mutant.name, "exec", ast.PyCF_ONLY_AST)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_each_kind_is_made() -> None:
    names = [mutant.name for mutant in MUTANTS]
    for part in (": without ", " moved up", " moved down", "checksum not looked at", " not taken"):
        assert sum(part in name for name in names) >= 5, part


def test_the_harmless_ones_are_mutants() -> None:
    """A name that the code has left behind would excuse nothing, or the wrong thing."""
    assert harmless_names() <= {mutant.name for mutant in MUTANTS}
