"""The rules that hold the house together: which folder may use which, what an import does, what has a docstring.

The layers of cext/ stand in a table of ARCHITECTURE.md, which is read here: the page and the rule are one.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dynet_lite as dy
from dynet_lite import harness, nn, onnx, text

ROOT = Path(__file__).resolve().parent.parent
CEXT = ROOT / "cext"
INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from)\s+(["<])([^">]+)[">]', re.MULTILINE)
SOURCES = sorted(p for p in CEXT.rglob("*") if p.suffix in (".h", ".cc", ".inc", ".pyx", ".pxd", ".pxi"))
LEAVES = ("ops", "backends")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def layers() -> dict[str, set[str]]:
    """Folder of cext/ -> folders it may include, from rows "| `cext/op/` | ... | base, op |"."""
    rows = re.findall(r"^\| `cext/(\w+)/` \|.*\| ([^|]+) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    return {folder: set(re.findall(r"\w+", allowed)) for folder, allowed in rows}


def folder_of(path: Path) -> str:
    return path.relative_to(CEXT).parts[0]


def included(path: Path) -> Iterator[tuple[str, Path | None]]:
    """(name, file) of everything a source includes; no file for <...>."""
    for quote, name in INCLUDE.findall(path.read_text()):
        if quote == "<":
            yield name, None
            continue
        beside, below = path.parent / name, CEXT / name
        yield name, below if below.exists() else beside


# ---- C++ -------------------------------------------------------------------------------------------------------


def test_every_folder_has_a_row() -> None:
    assert set(layers()) == {p.name for p in CEXT.iterdir() if p.is_dir() and p.name != "__pycache__"}


def test_layers_have_an_order() -> None:
    """The table itself has no cycle."""
    left = {folder: allowed - {folder} for folder, allowed in layers().items()}
    while left:
        lowest = {folder for folder, allowed in left.items() if not allowed & set(left)}
        assert lowest, f"these may include each other: {sorted(left)}"
        left = {folder: allowed for folder, allowed in left.items() if folder not in lowest}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_includes(path: Path) -> None:
    folder = folder_of(path)
    for name, target in included(path):
        if target is None:
            assert folder == "bindings" or "Python.h" not in name, "only bindings/ knows Python"
            continue
        assert target.exists(), f"{name} is not in cext/; the standard library is included as <...>"
        to = folder_of(target)
        assert to in layers()[folder], f"{folder}/ may include {sorted(layers()[folder])}, not {name}"
        inside = path.parent in target.parents  # its own folder, or one below
        assert to not in LEAVES or inside, f"nobody includes {to}/ but itself: {name}"


def test_the_scanner_sees_includes() -> None:
    """A scanner that finds nothing would pass every test above."""
    found = {(folder_of(path), folder_of(to)) for path in SOURCES for _, to in included(path) if to and to.exists()}
    assert {("ops", "op"), ("exec", "schedule"), ("schedule", "graph"), ("graph", "op"), ("bindings", "exec")} <= found


@pytest.mark.parametrize("path", [p for p in SOURCES if p.suffix == ".h"], ids=name_of)
def test_headers_say_what_they_are(path: Path) -> None:
    assert path.read_text().startswith("// "), "the first comment says what the file is for and who may include it"


# ---- Python ----------------------------------------------------------------------------------------------------


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """(module, name) of every import of a file; the name is None for `import module`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from ((module, alias.name) for alias in node.names)


def test_modules_import_no_private_name_of_another() -> None:
    ours = sorted((ROOT / "dynet_lite").rglob("*.py"))
    private = re.compile(r"_(?!_|core$|load$)")
    modules = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in ours}
    found = [
        f"{name_of(path)}: {module}.{name}"
        for path in ours
        for module, name in imports(path)
        if module in modules and name and private.match(name)
    ]
    assert not found


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.py")), ids=name_of)
def test_recipes_use_public_names(path: Path) -> None:
    packages = {f"dynet_lite.{m.__name__.split('.')[1]}": set(m.__all__) for m in (text, nn, harness, onnx)}
    public = {"dynet_lite": set(dy.__all__), **packages}
    for module, name in imports(path):
        if module.split(".")[0] == "dynet_lite":
            assert module in public, f"a recipe imports {', '.join(public)}, not {module}"
            assert name is None or name in public[module] or f"{module}.{name}" in public, f"{module}.{name}"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dy":
            assert node.attr in dy.__all__, f"dy.{node.attr} is not a public name"


def members_without_docstring(item: object) -> list[str]:
    """Public methods and properties of a class. A method may have its docstring in a base class."""
    if not inspect.isclass(item):
        return []
    members = [m for m, value in vars(item).items() if callable(value) or isinstance(value, property)]
    return [m for m in members if not m.startswith("_") and not inspect.getdoc(getattr(item, m))]


PUBLIC_IN_PACKAGES = [(m, name) for m in (text, nn, harness, onnx) for name in m.__all__]


@pytest.mark.parametrize("module, name", PUBLIC_IN_PACKAGES, ids=lambda x: getattr(x, "__name__", x))
def test_names_of_packages_have_docstrings(module: object, name: str) -> None:
    item = getattr(module, name)
    assert not callable(item) or item.__doc__, f"{name} has no docstring"
    bare = members_without_docstring(item)
    assert not bare, f"no docstring: {name}.{f', {name}.'.join(bare)}"


@pytest.mark.parametrize("path", sorted((ROOT / "dynet_lite" / "text").rglob("*.py")), ids=name_of)
def test_text_side_needs_no_engine(path: Path) -> None:
    for module, _ in imports(path):
        if module.split(".")[0] == "dynet_lite":
            assert re.match(r"dynet_lite\.(text|errors|whitespace)\b", module), f"text/ imports {module}"


IMPORT_IS_QUIET = """
import sys, threading
argv = ["x", "--dynet-mem", "nonsense"]
sys.argv[:] = argv
before = threading.active_count()
import dynet_lite
loaded = {m.split(".")[0] for m in sys.modules} & {"nltk", "tqdm", "matplotlib", "torch", "dynet", "onnx"}
assert not loaded, f"importing dynet_lite imports {loaded}"
assert sys.argv == argv and threading.active_count() == before
"""


def test_import_does_nothing_else(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_IS_QUIET], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == "", "importing prints"
    assert list(tmp_path.iterdir()) == [], "importing writes files"


def test_public_names_exist() -> None:
    missing = [name for name in dy.__all__ if not hasattr(dy, name)]
    assert not missing


DOCUMENTED = [n for n in sorted(set(dy.__all__)) if callable(getattr(dy, n, None))]


def test_public_names_have_docstrings() -> None:
    """Functions, classes and their members."""
    bare = []
    for name in DOCUMENTED:
        item = getattr(dy, name)
        if not inspect.getdoc(item) or (inspect.isclass(item) and not item.__doc__):
            bare.append(name)
        if inspect.isclass(item) and item.__module__.startswith("dynet_lite"):
            bare += [f"{name}.{m}" for m in members_without_docstring(item)]
    assert not bare, f"no docstring: {', '.join(bare)}"
