"""
Builds the kernels (`ibb/kernels.py`) where Cython and a C compiler are there: all of them, or none.

A kernel is a module with a `.pxd` beside it. None of them must be built: without one, or with
IBB_INTERPRETED set, its Python source runs. Each gets a mark of the sources that it is compiled
from, by which a program that imports it knows whether all fit. All else about the package is in
`pyproject.toml`.
"""

import os
import runpy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

BUILD = Path("build/cython")
DIRECTIVES = {
    "annotation_typing": False,  # types are in the .pxd
    "boundscheck": False,  # kernels check every foreign length themselves, compiled or not
    "cdivision": True,  # what is divided is not negative
    "initializedcheck": False,
    "wraparound": False,
}
MARKS: dict[str, str] = runpy.run_path("ibb/kernels.py")["marks"]()


def kernels() -> list[Extension]:
    """Return the extension modules, none if they are not wanted or cannot be translated."""
    if os.environ.get("IBB_INTERPRETED"):
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415 - an installation may lack it
    except ImportError:
        return []
    sources = [f"{name.replace('.', '/')}.py" for name in MARKS]
    found: list[Extension] = cythonize(
        sources, build_dir=str(BUILD), language_level=3, compiler_directives=DIRECTIVES
    )
    for extension in found:
        extension.optional = True  # cythonize would drop it; without a compiler, go on
        extension.extra_compile_args = ["-O2", "-g0"]  # as fast here, in half the time
        extension.sources.append(marked(extension.name))
    return found


def marked(name: str) -> str:
    """Return the path of a source in C that puts a kernel's mark into it."""
    path = BUILD / f"{name}.mark.c"
    source = f'const char ibb_kernel_mark[] = "{MARKS[name]}";\n'
    if not path.exists() or path.read_text() != source:  # else it would be compiled once more
        path.write_text(source)
    return str(path)


class AllOrNone(build_ext):
    """Builds the kernels, and throws them away if one of them could not be built."""

    def build_extensions(self) -> None:
        """Build them."""
        super().build_extensions()
        built = {one.name: Path(self.get_ext_fullpath(one.name)) for one in self.extensions}
        if not all(
            path.exists() and MARKS[name].encode() in path.read_bytes()
            for name, path in built.items()
        ):
            self.warn("not all kernels could be compiled: they will run as plain Python")
            for path in built.values():
                path.unlink(missing_ok=True)


setup(ext_modules=kernels(), cmdclass={"build_ext": AllOrNone})
