"""The pages of the API: which names stand on which. Every public name is on one of them, also those that `dir()` leaves out."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import dynet_lite as dy

# page: (title, what it says, modules whose names it has). Functions of other modules, the compiled one among them, are ops, and
# classes are under graphs.
GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "graphs": (
        "Expressions and graphs",
        "Building a graph, running it, looking at values.",
        ("graph", "tensor"),
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


def pages() -> dict[str, str]:
    """path: text of each page, for mkdocstrings."""
    by_page: dict[str, list[str]] = {page: [] for page in GROUPS}
    for name in sorted(dy.__all__):
        page = group_of(name)
        if page:
            by_page[page].append(name)
    made = {"api/index.md": "# API\n\n| page | |\n|---|---|\n"}
    for page, (title, about, modules) in GROUPS.items():
        module = importlib.import_module(title if not modules else "dynet_lite")
        names = by_page[page] if modules else sorted(module.__all__)
        about = about or (module.__doc__ or "").partition("\n")[0]
        made["api/index.md"] += f"| [{title}]({page}.md) | {about} {len(names)} names. |\n"
        intro = f"{about} All of them are names of `dynet_lite`." if modules else inspect.cleandoc(module.__doc__ or "")
        described = [name for name in names if callable(getattr(module, name))]
        plain = [f"`{name}` = `{getattr(module, name)!r}`" for name in names if name not in described]
        text = f"# {title}\n\n{intro}\n\n" + (f"Constants: {', '.join(plain)}.\n\n" if plain else "")
        made[f"api/{page}.md"] = text + "".join(f"::: {module.__name__}.{name}\n\n" for name in described)
    return made
