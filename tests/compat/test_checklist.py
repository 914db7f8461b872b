"""The checklist: each name that DyNet offers exists here, is documented and has a test; checklist.txt has the names.

Where DyNet is installed, the list is held against the module itself, with all methods of its classes.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite.compat.names import NAMES

HERE = Path(__file__)
STAR_ONLY = {"np", "os", "pickle", "sys"}  # what `from dynet import *` brings, by way of the stand-in


def read_list() -> tuple[list[str], list[str], dict[str, str]]:
    """Names such as tanh and Parameters.shape, flags, and names that are not offered with their reasons."""
    names: list[str] = []
    flags: list[str] = []
    absent: dict[str, str] = {}
    section = ""
    for line in HERE.with_name("checklist.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("["):
            section = line
        elif section == "[flags]":
            flags += line.split()
        elif section == "[not offered]" and line:
            name, _, reason = line.partition(": ")
            absent[name] = reason
        elif section and line:
            left, colon, methods = line.partition(":")
            names += [f"{holder}.{m}" for holder in left.split() for m in methods.split()] if colon else line.split()
    assert len(names) == len(set(names)), sorted(n for n in set(names) if names.count(n) > 1)
    return names, flags, absent


LIST, FLAGS, ABSENT = read_list()


@cache
def text_of_tests() -> str:
    """All tests but this one."""
    return "\n".join(p.read_text(encoding="utf-8") for p in HERE.parents[1].rglob("*.py") if p != HERE)


def check(name: str) -> None:
    """A name exists and has a docstring, where it is a thing that has one."""
    holder, _, method = name.partition(".")
    item = getattr(dy, holder)
    if method:
        found = inspect.getattr_static(item, method, None)
        assert found is not None, f"{name} is missing"
        if method.startswith("__"):
            return
        documented = inspect.getdoc(getattr(item, method)) or inspect.getdoc(found)
        for base in getattr(item, "__mro__", ()):
            documented = documented or getattr(getattr(base, method, None), "__doc__", None)
        assert documented, f"{name} has no docstring"
    elif callable(item):
        assert inspect.getdoc(item), f"{name} has no docstring"


@pytest.mark.parametrize("name", LIST)
def test_name(name: str) -> None:
    """It exists and is documented, `import *` brings it, and a test names it."""
    check(name)
    holder, _, method = name.partition(".")
    assert holder in dy.__all__
    if not method.startswith("__"):
        pattern = rf"\.{method}\b|[\"']{method}[\"']" if method else rf"\b{holder}\b"
        assert re.search(pattern, text_of_tests()), f"no test names {name}"


@pytest.mark.parametrize("flag", FLAGS)
def test_flag(flag: str) -> None:
    """It is read, or ignored on purpose, and a test uses it."""
    name = flag.removeprefix("--dynet-").replace("-", "_")
    assert {name, dy.config.ALIASES.get(name)} & {*dy.config.OPTIONS, *dy.config._OF_GPUS, *dy.config._IGNORED}
    assert re.search(rf"{flag}\b(?!-)", text_of_tests()), f"no test uses {flag}"


def test_what_is_not_offered() -> None:
    """A name that exists by now does not belong there."""
    for name in ABSENT:
        holder, _, method = name.partition(".")
        assert not hasattr(getattr(dy, holder, None), method) if method else not hasattr(dy, name), name


def test_star_imports() -> None:
    """compat/names.py, what the stand-in shows, has the names of the list, and no others."""
    listed = {n for n in LIST if "." not in n and not n.startswith("__")}
    text = HERE.with_name("checklist.txt").read_text(encoding="utf-8")
    ours_only = {
        n for line in text.split("[C++ only in DyNet]")[1].splitlines() if ":" not in line for n in line.split()
    }
    assert listed - ours_only == set(NAMES)


@needs_dynet
def test_the_module_itself() -> None:
    """All that the real module shows, with the methods of its classes."""
    found = run("""
out = {}
for n in dir(dy):
    if not n.startswith("_"):
        item = getattr(dy, n)
        out[n] = [m for m in dir(item) if not m.startswith("_")] if isinstance(item, type) else []
""")
    assert set(found) - STAR_ONLY - set(NAMES) == set(ABSENT)
    assert set(NAMES) <= set(found), "dynet_names.py has a name that DyNet has not"
    for name, methods in found.items():
        if name not in STAR_ONLY and name not in ABSENT:
            check(name)
            for method in methods:
                check(f"{name}.{method}")
