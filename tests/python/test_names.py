"""The public names: what DyNet offers is there, nothing private leaks, the version is that of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from real_dynet import needs_dynet, python, run

import dynet_lite as dy

# What DyNet's module shows and we do not: its own imports and its error text.
NOT_OURS = {"ERRMSG", "np", "os", "pickle", "print_function", "sys"}


@needs_dynet
def test_all_names_of_dynet() -> None:
    theirs = set(run("out = [n for n in dir(dy) if not n.startswith('_')]"))
    assert theirs - set(dy.__all__) == NOT_OURS & theirs


def test_all() -> None:
    assert not [n for n in dy.__all__ if not hasattr(dy, n)]
    assert len(dy.__all__) == len(set(dy.__all__))
    for name in dy._core.OP_NAMES:
        assert callable(getattr(dy, name)), name
    for module in (dy.ops, dy.ops_loss, dy.ops_random, dy.ops_segment, dy.builders):
        for name in module.__all__:
            assert getattr(dy, name) is getattr(module, name)


@pytest.mark.parametrize("name", sorted(set(dy.__all__) - {"HAVE_CUDA", "__version__", "__gitversion__"}))
def test_everything_has_a_docstring(name: str) -> None:
    doc = getattr(dy, name).__doc__
    assert doc and len(doc.strip()) > 10, name


RELOADED = """
import importlib
import dynet_lite as dy
before = dict(vars(dy))
importlib.reload(dy)
assert vars(dy).keys() == before.keys(), vars(dy).keys() ^ before.keys()
assert [type(one) for one in before.values()] == [type(vars(dy)[name]) for name in before]
assert all(vars(dy)[name] is one for name, one in before.items() if isinstance(one, type))  # objects keep their classes
rate = vars(dy.Trainer)['learning_rate'].fget
importlib.reload(dy)
assert vars(dy.Trainer)['learning_rate'].fget is rate  # wrapped once
print(dy.tanh(dy.scalarInput(0)).value())
"""


def test_reload() -> None:
    done = python("-c", RELOADED)
    assert (done.stdout, done.stderr) == ("0.0\n", "")


def test_version() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.+)"$', text, re.M)[1] == dy.__version__  # type: ignore[index]
