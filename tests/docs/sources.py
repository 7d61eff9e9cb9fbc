"""
The sources that pages install from, in /usr/src/ibb-VERSION of the page's folder.

What is installed is real, in an environment of its own; only pip asks no index, as what it needs
is that of the tests, and nothing is compiled, which takes minutes: that is the image's to prove.
"""

import re
import shutil
import sys
import sysconfig
from pathlib import Path

from .console import ROOT

NEEDED = ("LICENSE", "README.md", "pyproject.toml", "pyspark_ibb.py", "setup.py")
ENVIRONMENT = {
    "PYTHONPATH": "",  # else this tree would run instead of what is installed
    "IBB_INTERPRETED": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_BUILD_ISOLATION": "false",  # to pip, this means that there is none
    "PIP_NO_DEPS": "1",
    "PIP_NO_INDEX": "1",
}
# Makes environments that find the tests' packages behind their own, which have an old setuptools.
PYTHON = f"""\
#!/usr/bin/env bash
{sys.executable} "$@" && cd "${{@: -1}}"/lib/python3*/site-packages && rm -rf setuptools* || exit
echo {sysconfig.get_path("purelib")} >tests.pth
"""


def provide_sources(folder: Path, version: str) -> None:
    """Put this tree there as if it were *version*."""
    tree = folder / "usr" / "src" / f"ibb-{version}"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "ibb", tree / "ibb", ignore=ignored)
    for name in NEEDED:
        shutil.copy(ROOT / name, tree)
    settings = tree / "pyproject.toml"
    text = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', settings.read_text(), count=1)
    settings.write_text(text)


def provide_python(folder: Path) -> None:
    """Put a stand-in for `python3` where the page finds it first."""
    path = folder / "bin" / "python3"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PYTHON)
    path.chmod(0o755)
