"""Files of a recipe: the model (weights, settings, vocabularies) and the state of a training that can be resumed.

A file is written beside its target and then moved there, so that it is whole or the old one. Nothing in it is executed
when it is read.
"""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.errors import DataError
from dynet_lite.io import replacing

from .recipe import Recipe
from .settings import Settings, from_dict, to_dict

__all__ = ["Arrays", "load_recipe", "make_recipe", "read_archive", "save_recipe", "write_archive"]

Arrays = dict[str, np.ndarray[Any, Any]]
AnyRecipe = Recipe[Any, Any]


def make_recipe(kind: type[AnyRecipe], s: Settings, parts: dict[str, Any]) -> AnyRecipe:
    """A model with new weights. The same settings and parts give the same weights."""
    dy.reset_random_seed(s.seed)
    recipe = kind(s, parts)
    if not hasattr(recipe, "random"):
        raise TypeError(f"[harness] {kind.__name__}.__init__ must call super().__init__(s, parts)")
    return recipe


# ---- weights and random numbers ------------------------------------------------------------------------------------


def get_weights(model: dy.ParameterCollection) -> Arrays:
    """Copies of all weights."""
    out = {f"p{i}": p.as_array().astype(np.float32) for i, p in enumerate(model.parameters_list())}
    out.update({f"t{i}": p.as_array().astype(np.float32) for i, p in enumerate(model.lookup_parameters_list())})
    return out


def set_weights(model: dy.ParameterCollection, arrays: Mapping[str, Any], where: str = "weights") -> None:
    """The reverse of get_weights; DataError, and nothing changed, if the arrays are those of another model."""
    members: dict[str, Any] = {f"p{i}": p for i, p in enumerate(model.parameters_list())}
    members.update({f"t{i}": p for i, p in enumerate(model.lookup_parameters_list())})
    if set(members) != set(arrays):
        raise DataError(f"{where}: expected the weights of {len(members)} parameters, got {len(arrays)}")
    for key, p in members.items():
        if tuple(p.shape()) != arrays[key].shape:
            raise DataError(f"{where}: expected shape {tuple(p.shape())} for {p.name()}, got {arrays[key].shape}")
    for key, p in members.items():
        (p.set_value if key[0] == "p" else p.init_from_array)(arrays[key])


def get_random(recipe: AnyRecipe) -> dict[str, Any]:
    """The state of everything that random numbers come from, as json.dump can write it."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {
        "recipe": recipe.random.getstate(),
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "engine": _core.get_seed_state(),
    }


def set_random(recipe: AnyRecipe, state: Mapping[str, Any]) -> None:
    """Random numbers go on from here. Takes what get_random gave, also when it has been in a JSON file."""
    for generator, name in ((recipe.random, "recipe"), (random, "python")):
        version, numbers, gauss = state[name]
        generator.setstate((version, tuple(numbers), gauss))
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    _core.set_seed_state(state["engine"])


# ---- files ---------------------------------------------------------------------------------------------------------


def write_archive(path: str, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Arrays and a JSON value in one file."""
    text = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), dtype=np.uint8)
    with replacing(path) as file:
        np.savez(file, about=text, **arrays)  # type: ignore[arg-type]  # the names of arrays are never 'allow_pickle'


def read_archive(path: str, wanted: str) -> tuple[Arrays, dict[str, Any]]:
    """What write_archive wrote. DataError if the file is something else or damaged; `wanted` says what it should be."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError, AttributeError):
        raise DataError(f"{path}: expected {wanted}; the file is damaged or something else") from None
    return arrays, about


def save_recipe(recipe: AnyRecipe, path: str) -> None:
    """Writes weights, settings and vocabularies."""
    about = {"recipe": type(recipe).__name__, "settings": to_dict(recipe.settings), "parts": recipe.parts}
    write_archive(path, get_weights(recipe.model), about)


def read_about(path: str, kind: type[AnyRecipe]) -> tuple[Arrays, dict[str, Any]]:
    """Weights and description of a saved model of this kind."""
    arrays, about = read_archive(path, "a model that --save wrote")
    if about.get("recipe") != kind.__name__:
        raise DataError(f"{path}: expected a model of {kind.__name__}, got one of {about.get('recipe')}")
    return arrays, about


def load_recipe(
    kind: type[AnyRecipe], settings: type[Settings], path: str, change: Mapping[str, Any] | None = None
) -> AnyRecipe:
    """A saved model; `change` holds settings that are to differ from the saved ones."""
    arrays, about = read_about(path, kind)
    try:
        recipe = make_recipe(kind, from_dict(settings, {**about["settings"], **(change or {})}, path), about["parts"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: expected a model that --save wrote: {error!r}") from None
    set_weights(recipe.model, arrays, path)
    return recipe
