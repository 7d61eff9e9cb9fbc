"""The mutants can be made, and those that are called harmless are some of them."""

import ast
from pathlib import Path

from .covering_tests import CoveringTests, measure
from .mutants import make_mutants
from .mutate import ROOT, STORAGE, harmless_names

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


def test_a_case_of_each_test_that_runs_a_line_comes_first() -> None:
    module = Path("purge.py")
    tests = CoveringTests(
        {module: {7: {"a::x[1]", "a::x[2]", "b::y"}, 8: {"c::z"}, 9: {"d::not_asked"}}},
        {"a::x[1]": 2.0, "a::x[2]": 0.5, "b::y": 1.0, "c::z": 0.1},
    )
    assert tests.of(module, range(7, 9)) == (["c::z", "a::x[2]", "b::y"], ["a::x[1]"])
    assert tests.seconds(["a::x[1]", "b::y"]) == 3.0
    assert tests.of(Path("another.py"), [7]) == ([], [])


def test_what_tests_run_is_measured() -> None:
    tests = measure(ROOT, 1, "tests/storage/test_page.py")
    (of_page,) = (mutant for mutant in MUTANTS if mutant.path == STORAGE / "page.py")
    firsts, others = tests.of(of_page.path, of_page.lines)
    assert firsts
    assert all(test.startswith("tests/storage/test_page.py::test_") for test in firsts + others)
    assert tests.seconds(firsts) > 0
