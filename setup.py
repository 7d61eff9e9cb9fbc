"""
Builds the kernels (`ibb/kernels.py`) where Cython and a C compiler are there.

A kernel is a module with a `.pxd` beside it. None of them must be built: without one, or with
IBB_INTERPRETED set, its Python source runs. All else about the package is in `pyproject.toml`.
"""

import os
from pathlib import Path

from setuptools import Extension, setup

DIRECTIVES = {
    "annotation_typing": False,  # types are in the .pxd
    "boundscheck": False,  # kernels check every foreign length themselves, compiled or not
    "cdivision": True,  # what is divided is not negative
    "initializedcheck": False,
    "wraparound": False,
}


def kernels() -> list[Extension]:
    """Return the extension modules, none if they are not wanted or cannot be translated."""
    if os.environ.get("IBB_INTERPRETED"):
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415 - an installation may lack it
    except ImportError:
        return []
    sources = [str(path.with_suffix(".py")) for path in sorted(Path("ibb").rglob("*.pxd"))]
    found: list[Extension] = cythonize(
        sources, build_dir="build/cython", language_level=3, compiler_directives=DIRECTIVES
    )
    for extension in found:
        extension.optional = True  # cythonize would drop it; without a compiler, go on
        extension.extra_compile_args = ["-O2", "-g0"]  # as fast here, in half the time
    return found


setup(ext_modules=kernels())
