"""Runs pieces of Python in other processes: with the real DyNet, where it is installed, and with dynet_lite."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import dynet_lite

HAS_DYNET = importlib.util.find_spec("_dynet") is not None
needs_dynet = pytest.mark.skipif(not HAS_DYNET, reason="DyNet (dyNET38) is not installed")

HEAD = """
import sys, json, os
sys.argv = ["x"] + {argv!r}
import numpy as np
import dynet as dy
data = json.loads({data!r})
out = None
"""
TAIL = """
print("RESULT" + json.dumps(out))
sys.stdout.flush()
os._exit(0)
"""


def run(code: str, data: Any = None, argv: tuple[str, ...] = ("--dynet-mem", "64")) -> Any:
    """The value of `out` after running code in DyNet; `data` is what is given here (as JSON)."""
    program = HEAD.format(data=json.dumps(data), argv=list(argv)) + code + TAIL
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            return json.loads(line[len("RESULT") :])
    raise AssertionError(f"DyNet failed:\n{done.stderr[-3000:]}")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh Python that finds the dynet_lite under test, wherever that lies."""
    path = str(Path(dynet_lite.__file__).parents[1])
    return subprocess.run([sys.executable, *arguments], text=True, capture_output=True, timeout=300,
                          cwd=tempfile.gettempdir(), env={**os.environ, "PYTHONPATH": path, **environment})  # fmt: skip
