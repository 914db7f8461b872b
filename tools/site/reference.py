"""The pages of the API: which names stand on which. Every public name is on one of them, also those that `dir()` leaves out.

tools/site/api/PAGE.md has the words and examples of a page; a line `::: tanh exp` in it stands for the descriptions of these
names. Names that no page mentions are added at the end of the page of their module.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dynet_lite as dy

PAGES = Path(__file__).parent / "api"
LISTED = re.compile(r"^::: (.+)$", re.MULTILINE)
# page: (title, what it says, modules whose names it has). Functions of other modules, the compiled one among them, are ops, and
# classes are under graphs.
GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "graphs": (
        "Expressions and graphs",
        "Building a graph, running it, looking at values.",
        ("graph", "tensor"),
    ),
    "cells": (
        "Cells and compiled functions",
        "Functions that are recorded once and repeated without Python.",
        ("cells", "cell_builder", "compiled"),
    ),
    "ops": ("Operations", "Functions that take expressions and give expressions.", ("ops", "ops_loss", "ops_random")),
    "parameters": (
        "Parameters and files",
        "Collections, weights, lookup tables, first values; saving and loading.",
        ("params", "initializers", "checkpoint", "io", "trained", "embeddings", "compat.words"),
    ),
    "builders": (
        "Builders",
        "Recurrent and tree-structured networks, output layers.",
        ("builders", "softmax_builders"),
    ),
    "trainers": ("Trainers", "Update rules.", ("trainers",)),
    "seeing": (
        "Looking inside",
        "Explanations, profiles, checks.",
        ("explain", "rewrites", "profiling", "summary", "gradcheck"),
    ),
    "settings": ("Settings and errors", "Configuration, DyNet's name, exceptions.", ("config", "compat", "errors")),
    "text": ("dynet_lite.text", "", ()),
    "nn": ("dynet_lite.nn", "", ()),
    "harness": ("dynet_lite.harness", "", ()),
    "viz": ("dynet_lite.viz", "", ()),
    "distributed": ("dynet_lite.distributed", "", ()),
    "onnx": ("dynet_lite.onnx", "", ()),
}
WEIGHTS = ("Parameters", "LookupParameters")  # of the compiled engine


def group_of(name: str) -> str | None:
    """The page of a public name of dynet_lite; None for modules and constants."""
    thing: Any = getattr(dy, name)
    module = getattr(thing, "__module__", None)
    if inspect.ismodule(thing) or not module or not module.startswith("dynet_lite."):
        return None
    parts = (module.removeprefix("dynet_lite."), module.split(".")[1])
    if name in WEIGHTS:
        return "parameters"
    named = next((page for part in parts for page, (_, _, modules) in GROUPS.items() if part in modules), None)
    return named or ("graphs" if inspect.isclass(thing) else "ops")


def mentioned(page: str) -> list[str]:
    """The names on the lines `:::` of a page."""
    return [
        name for line in LISTED.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")) for name in line.split()
    ]


def inherited(thing: Any, public: set[str]) -> Iterator[str]:
    """Methods that a class has from bases of ours which stand on no page: they are described with the class."""
    if inspect.isclass(thing):
        for base in thing.__mro__[1:]:
            if base.__module__.startswith("dynet_lite.") and base.__name__ not in public:
                methods = {
                    name
                    for name, value in vars(base).items()
                    if inspect.isroutine(value) or isinstance(value, property)
                }
                yield from (name for name in methods if name == "__call__" or not name.startswith("_"))


def directive(module: ModuleType, name: str, public: set[str]) -> str:
    """What mkdocstrings turns into the description of a name."""
    thing = getattr(module, name)
    if not callable(thing):
        value = ", ".join(thing) if isinstance(thing, dict) and len(thing) > 9 else repr(thing)
        return f"`{name}` = `{value}`\n\n"
    lines = [f"::: {module.__name__}.{name}", "    options:", "      heading_level: 3"]
    members = sorted(set(inherited(thing, public)))
    if members:
        lines.append(f"      inherited_members: [{', '.join(members)}]")
    return "\n".join(lines) + "\n\n"


def filled(page: str, described: dict[str, str]) -> str:
    """The words of a page with the descriptions in their places, and those that have none at the end."""
    written = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    text = LISTED.sub(lambda line: "".join(described[name] for name in line[1].split()), written)
    rest = [text for name, text in described.items() if name not in mentioned(page)]
    return text + ("\n## More\n\n" + "".join(rest) if rest else "")


def pages() -> dict[str, str]:
    """path: text of each page, for mkdocstrings."""
    placed = {name: page for page, (_, _, modules) in GROUPS.items() if modules for name in mentioned(page)}
    by_page: dict[str, list[str]] = {page: [] for page in GROUPS}
    for name in sorted(dy.__all__):
        page = placed.get(name) or group_of(name)
        if page:
            by_page[page].append(name)
    made = {"api/index.md": "# API\n\n| page | what is on it |\n|---|---|\n"}
    for page, (title, about, modules) in GROUPS.items():
        module = importlib.import_module("dynet_lite" if modules else title)
        names = by_page[page] if modules else sorted(module.__all__)
        public = set(dy.__all__) | set(names)
        about = about or (module.__doc__ or "").partition("\n")[0]
        made["api/index.md"] += f"| [{title}]({page}.md) | {about} {len(names)} names. |\n"
        described = {name: directive(module, name, public) for name in names}
        made[f"api/{page}.md"] = f"# {title}\n\n{filled(page, described)}"
    return made
