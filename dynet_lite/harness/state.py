"""Models of recipes in files: made anew, saved, loaded; weights and random numbers taken and put back.

A model file is a checkpoint (dynet_lite/checkpoint.py) whose config has the name of the recipe, the settings and the parts
that build() gave. The state of a training, in a file of its own, is written by loop.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.errors import DataError

from .recipe import Recipe
from .settings import Settings, from_dict, to_dict

__all__ = ["about", "load_recipe", "make_recipe", "read", "read_any", "save_recipe"]

Arrays = dict[str, np.ndarray[Any, Any]]
AnyRecipe = Recipe[Any, Any]


def make_recipe(kind: type[AnyRecipe], s: Settings, parts: dict[str, Any]) -> AnyRecipe:
    """A model with new weights. Equal settings and parts give equal weights."""
    dy.reset_random_seed(s.seed)
    recipe = kind(s, parts)
    if not hasattr(recipe, "random"):
        raise TypeError(f"[harness] {kind.__name__}.__init__ must call super().__init__(s, parts)")
    return recipe


# ---- weights and random numbers ------------------------------------------------------------------------------------


def _members(model: dy.ParameterCollection) -> dict[str, Any]:
    members: list[Any] = [*model.parameters_list(), *model.lookup_parameters_list()]
    return {p.name(): p for p in members}


def get_weights(model: dy.ParameterCollection) -> Arrays:
    """Copies of all weights, by name."""
    return {name: p.as_array().astype(np.float32) for name, p in _members(model).items()}


def set_weights(model: dy.ParameterCollection, arrays: Mapping[str, Any]) -> None:
    """The reverse of get_weights."""
    for name, p in _members(model).items():
        (p.init_from_array if isinstance(p, dy.LookupParameters) else p.set_value)(arrays[name])


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


def about(recipe: AnyRecipe) -> dict[str, Any]:
    """What a file has to say so that the model can be made again."""
    return {"recipe": type(recipe).__name__, "settings": to_dict(recipe.settings), "parts": recipe.parts}


def save_recipe(recipe: AnyRecipe, path: str) -> None:
    """Writes weights, settings and vocabularies to a file."""
    dy.save_checkpoint(path, recipe.model, config=about(recipe))


def read_any(path: str) -> dy.Checkpoint:
    """A file of a model of any recipe; DataError or ModelFileError if it is something else."""
    file = dy.read_checkpoint(path)
    if not isinstance(file.config, dict) or not {"recipe", "settings", "parts"} <= set(file.config):
        raise DataError(f"{path}: expected a file that a recipe wrote with --save")
    return file


def read(path: str, kind: type[AnyRecipe]) -> dy.Checkpoint:
    """A file of a model of this kind; DataError or ModelFileError if it is something else."""
    file = read_any(path)
    if file.config["recipe"] != kind.__name__:
        raise DataError(f"{path}: expected a model of {kind.__name__}, got one of {file.config['recipe']}")
    return file


def load_recipe(
    kind: type[AnyRecipe], settings: type[Settings], path: str, change: Mapping[str, Any] | None = None
) -> AnyRecipe:
    """A saved model, given its classes. `change` overrides saved settings. (`dy.load_recipe` needs only the file.)"""
    file = read(path, kind)
    try:
        s = from_dict(settings, {**file.config["settings"], **(change or {})}, path)
        recipe = make_recipe(kind, s, file.config["parts"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: expected a model that --save wrote: {error!r}") from None
    file.restore(recipe.model)
    return recipe
