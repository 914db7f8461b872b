"""The stand-in: programs and libraries written for DyNet run unchanged.

``install_as_dynet()`` makes ``import dynet``, ``import _dynet`` and ``import dynet_config`` resolve to dynet_lite, whether
DyNet is installed or not; ``python -m dynet_lite run script.py ...`` does it for a script. All three are one engine with
one state. As with DyNet, ``import dynet`` is the moment when the ``--dynet-*`` flags in ``sys.argv`` are read; they stay
there. ``from dynet import *`` brings DyNet's names, no others.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

import dynet_lite
from dynet_lite import config

from . import dynet_config, names

__all__ = ["install_as_dynet"]

NAMES = ("dynet", "_dynet", "dynet_config")
MARK = "__dynet_lite__"  # an attribute of the stand-ins
FOLDER = str(Path(__file__).parent / "standin")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.PathFinder.find_spec(fullname, [FOLDER]) if fullname in NAMES else None


def module(name: str) -> ModuleType:
    """The module that stands in for dynet, _dynet or dynet_config.

    `from dynet import *` brings DyNet's names, with four of DyNet 1; every other name of dynet_lite is found, too.
    """
    if name == "dynet_config":
        return dynet_config
    config.as_dynet()
    if name == "dynet":
        config.start()
    standin = ModuleType(name, dynet_lite.__doc__)
    known = [n for n in names.NAMES if hasattr(dynet_lite, n)]
    vars(standin).update({n: value for n, value in vars(dynet_lite).items() if not n.startswith("__")})
    # DyNet's module shows these through `from dynet import *`, and programs lean on it.
    vars(standin).update(np=np, os=os, pickle=pickle, sys=sys)
    # Programs ask which DyNet they run on; dynet_lite.__version__ is ours.
    vars(standin).update(__version__="2.1", __gitversion__=dynet_lite.__gitversion__)
    vars(standin).update({"__all__": [*known, *names.OF_DYNET_1, "np", "os", "pickle", "sys"], MARK: True})
    standin.__file__ = dynet_lite.__file__
    standin.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=dynet_lite.__file__)
    return standin


def install_as_dynet() -> None:
    """From now on `import dynet`, `import _dynet` and `import dynet_config` are dynet_lite, in this process and in
    those that multiprocessing starts from it. Calling it again changes nothing.

    RuntimeError when the real DyNet is already imported.
    """
    for name in NAMES:
        loaded = sys.modules.get(name)
        if loaded is not None and not hasattr(loaded, MARK) and loaded is not dynet_config:
            raise RuntimeError(f"[install_as_dynet] {name} is already imported from {loaded.__file__}; "
                               "call dynet_lite.install_as_dynet() before anything imports it")  # fmt: skip
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if FOLDER not in sys.path:
        sys.path.insert(1, FOLDER)  # processes that are spawned take sys.path over; its first place is the script's


def install_everywhere() -> None:
    """install_as_dynet() for this process and every Python that it starts."""
    install_as_dynet()
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != FOLDER]
    os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, *others])
