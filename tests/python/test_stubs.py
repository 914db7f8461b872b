"""The stub of the compiled module is what the generator writes, and it tells the truth about names and parameters."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import dynet_lite
from dynet_lite import _core

ROOT = Path(__file__).parents[2]
STUB = ROOT / "dynet_lite" / "_core.pyi"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("dnl_generate_stub", ROOT / "cext" / "bindings" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_stub_is_up_to_date() -> None:
    assert STUB.read_text() == generator().stub(ROOT / "cext"), "run: python cext/bindings/generate.py"


TREE = ast.parse(STUB.read_text())
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}


def parameters(node: ast.FunctionDef) -> list[str]:
    a = node.args
    names = [x.arg for x in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
    return [n for n in names if n != "self"]


def test_functions() -> None:
    runtime = {n for n, v in vars(_core).items() if inspect.isroutine(v) and not n.startswith("__")}
    runtime = {n for n in runtime if getattr(_core, n).__module__ == _core.__name__}
    assert runtime == set(FUNCTIONS)
    for name, node in FUNCTIONS.items():
        assert list(inspect.signature(getattr(_core, name)).parameters) == parameters(node), name


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes(name: str) -> None:
    cls = getattr(_core, name)
    told = {n.name: n for n in CLASSES[name].body if isinstance(n, ast.FunctionDef)}
    fields = {
        n.target.id for n in CLASSES[name].body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    for method, node in told.items():
        assert method == "__getattr__" or hasattr(cls, method), method
        if not method.startswith("__") and inspect.isroutine(getattr(cls, method)):
            assert [p for p in inspect.signature(getattr(cls, method)).parameters if p != "self"] == parameters(node), (
                method
            )
    if "__getattr__" in told:
        return
    inherited = {n for base in cls.__mro__[1:-1] for n in vars(base)}
    public = {n for n, v in vars(cls).items() if not n.startswith("__") and not isinstance(v, _core._Elsewhere)}
    private = {n for n in public if n.startswith("_")}
    assert public - private <= set(told) | fields | inherited


def test_all_is_told() -> None:
    lists = [n.value for n in TREE.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]  # type: ignore[attr-defined]
    assert ast.literal_eval(lists[0]) == _core.__all__
    assert (Path(dynet_lite.__file__).parent / "py.typed").exists()


ENTRY = """
const OpId first = register_op([](OpDef& op) {
  // op.signature = "not_this(x: expr)";
  op.signature = "first(x: expr, d: int = 0)";
  op.doc =
      "What it does.\\n\\n"
      "More.";
  op.forward = [](const Call& c) {
    if (c.nargs) return;
  };
});
static const OpId second =
    register_op( [] ( OpDef &op )
{
  op.joins = true;
  op . doc = "Short." ;
  op.signature="_second(xs: exprs)"  ;
} ) ;
"""


def test_entries_are_read_however_they_are_laid_out() -> None:
    generate = generator()
    found = generate.structural(Path("a.cc"), generate.COMMENT.sub("", ENTRY))
    assert [(e.name, [p.name for p in e.params], e.doc, e.internal) for e in found] == [
        ("first", ["x", "d"], "What it does.\n\nMore.", False),
        ("_second", ["xs"], "Short.", True),
    ]


@pytest.mark.parametrize(("old", "new"), [('"Short."', "text()"), ("[] ( OpDef &op )", "[] ( OpDef &entry )")])
def test_entries_that_cannot_be_read_stop_the_build(old: str, new: str) -> None:
    with pytest.raises(SystemExit, match=r"a\.cc"):
        generator().structural(Path("a.cc"), ENTRY.replace(old, new))


def test_all_registered_ops_were_read() -> None:
    assert sorted(_core.OP_NAMES + _core.INTERNAL_OP_NAMES) == sorted(_core.all_op_names())


def test_settings_are_those_of_the_engine() -> None:
    declared = generator().settings(ROOT / "cext")
    assert [(s.name, s.default, s.internal) for s in declared] == list(_core.SETTINGS)
    for name, default, _ in _core.SETTINGS:
        assert type(getattr(_core.settings, name)) is type(default), name
    with pytest.raises(AttributeError):
        _core.settings.no_such = True  # type: ignore[attr-defined]
