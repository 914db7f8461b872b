"""`python -m dynet_lite run script.py ...`: runs a program written for DyNet, unchanged."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from .install import install_everywhere


def run(script: str, arguments: Sequence[str]) -> None:
    """What `python script arguments` does, with the stand-in. Exceptions pass; see report() for their traces."""
    path = Path(script)
    if path.is_dir():
        path /= "__main__.py"
    try:
        source = path.read_bytes()
    except OSError as error:
        print(f"dynet_lite run: can't open {script!r}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    sys.argv = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):  # with -P no folder of a program is on the path
        sys.path[0] = str(path.resolve().parent)
    install_everywhere()
    name = os.path.abspath(path)  # programs ask for it when they have gone to another folder
    _run_code(compile(source, name, "exec", dont_inherit=True), name)


def _run_code(code: CodeType, path: str) -> None:
    main = ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    main.__spec__ = None
    vars(main).update(__cached__=None, __builtins__=builtins)  # the module itself, as in every main program
    sys.modules["__main__"] = main
    exec(code, vars(main))


def run_module(name: str, arguments: Sequence[str]) -> None:
    """What `python -m name arguments` does, with the stand-in."""
    import runpy

    sys.argv = [name, *arguments]
    install_everywhere()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def report(error: BaseException) -> None:
    """Show an exception of a script as Python would, without the frames of this module and of runpy."""
    trace = error.__traceback__
    ours = (__file__, str(Path(__file__).parents[1] / "__main__.py"))
    while trace is not None and (
        trace.tb_frame.f_code.co_filename in ours or trace.tb_frame.f_globals.get("__name__") == "runpy"
        or trace.tb_frame.f_code.co_filename == "<frozen runpy>"
    ):  # fmt: skip
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
