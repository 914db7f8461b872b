"""Loads the compiled module, without the threads that its BLAS would start when it is loaded.

OpenBLAS makes a pool as it is loaded, of a size it reads from the environment; the engine uses one thread of it. NumPy
comes first, so that its own BLAS keeps the threads the user wants. The package imports this before anything else.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

import numpy  # noqa: F401

_NAME = "OPENBLAS_NUM_THREADS"
_before = os.environ.get(_NAME)
os.environ[_NAME] = "1"
try:
    from dynet_lite import _core  # noqa: F401
except ImportError as error:
    if "partially initialized" not in str(error):  # it is there, but something that it needs is not
        raise
    folder = os.path.dirname(__file__)
    raise ImportError(
        f"there is no compiled engine in {folder}. If this is the source folder: install the package (pip install .) and "
        "run Python in another folder, or build in place (python setup.py build_ext --inplace)"
    ) from None
finally:
    if _before is None:
        del os.environ[_NAME]
    else:
        os.environ[_NAME] = _before


def submodules() -> dict[str, ModuleType]:
    """The modules of the package that are loaded, by their names in it."""
    found = [(name.split("."), module) for name, module in list(sys.modules.items())]
    return {path[1]: module for path, module in found if path[0] == "dynet_lite" and len(path) == 2}
