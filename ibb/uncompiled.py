"""What kernels use of Cython's module `cython` where they run as plain Python without it."""

from contextlib import nullcontext
from typing import Final

compiled: Final = False
nogil: Final = nullcontext()
