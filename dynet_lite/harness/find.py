"""The class of a recipe that a model file names: found among the programs and classes that may be used."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from dynet_lite.errors import DataError

from .catalogue import program, programs
from .recipe import Recipe
from .settings import Settings
from .state import read_any

__all__ = ["find_recipe", "load_program", "program_of", "settings_of"]

AnyRecipe = type[Recipe[Any, Any]]


def load_program(path: Path) -> ModuleType:
    """The program of a recipe as a module: what stands under `if __name__ == "__main__"` does not run.

    It may import what lies beside it, as when it is run.
    """
    name = f"dynet_lite_recipe_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and Path(str(loaded.__file__)) == path.resolve():
        return loaded
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise DataError(f"{path}: expected a Python program")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.pop(0)
    return module


def settings_of(kind: AnyRecipe) -> type[Settings]:
    """The settings class that a recipe names in `class X(Recipe[ITS_SETTINGS, ...])`."""
    for base in kind.__mro__:
        for generic in base.__dict__.get("__orig_bases__", ()):
            for argument in get_args(generic):
                if isinstance(argument, type) and issubclass(argument, Settings):
                    return argument
    raise TypeError(f"[harness] {kind.__name__}: expected a base such as harness.Recipe[MySettings, MyExample]")


def _subclasses(kind: AnyRecipe) -> list[AnyRecipe]:
    found = [kind]
    for below in kind.__subclasses__():
        found += _subclasses(below)
    return found


def _defines(path: Path, name: str) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body)


def _included(name: str) -> str | None:
    """The included recipe that defines the class `name`."""
    return next((short for short, path in programs().items() if _defines(path, name)), None)


def find_recipe(name: str, source: str | Path | None = None) -> AnyRecipe:
    """The class `name` of a recipe: in the program `source`, if given; else one that is loaded; else one of ours.

    A file of a model never decides which program is run: only what the caller names, has imported, or what came with
    the package.
    """
    if source is not None:
        found = getattr(load_program(program(str(source))), name, None)
        if not (isinstance(found, type) and issubclass(found, Recipe)):
            raise DataError(f"{source}: expected a recipe with the class {name}, which this model belongs to")
        return found
    for kind in reversed(_subclasses(Recipe)):
        if kind.__name__ == name:
            return kind
    if included := _included(name):
        return getattr(load_program(programs()[included]), name)  # type: ignore[no-any-return]
    raise DataError(
        f"this model belongs to the recipe {name!r}, which is not part of the package: name its program "
        f'(`serve` with --source my_recipe.py, load_recipe with source="my_recipe.py"), or import its class first'
    )


def program_of(path: str) -> str:
    """The name of the included recipe that wrote this file. DataError if it was another program's."""
    name = read_any(path).config["recipe"]
    if included := _included(name):
        return included
    raise DataError(
        f"{path}: this is a model of {name}, which is not part of the package: "
        f"write its program before --load, as in `predict my_recipe.py --load {path}`"
    )
