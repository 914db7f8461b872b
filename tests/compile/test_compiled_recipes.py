"""The losses of recipes' models as compiled functions of their examples, which are structure: values and gradients as plain."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, harness

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = ("bilstm_tagger", "rnnlm", "treelstm_sentiment", "stack_lstm_parser", "pointer_network", "biaffine_parser")


def recipe_of(name: str) -> tuple[Any, list[Any]]:
    """A model of the size that tests have, as it is before training, and some examples."""
    spec = importlib.util.spec_from_file_location(f"compiled_{name}", RECIPES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    kind = next(
        x for x in vars(module).values()
        if isinstance(x, type) and issubclass(x, harness.Recipe) and x.__module__ == spec.name
    )  # fmt: skip
    known = {field.name for field in dataclasses.fields(module.Settings)}
    settings = module.Settings(**{k: v for k, v in kind.smoke.items() if k in known})
    train = kind.load_data(settings).train[:24]
    return kind(settings, kind.build(settings, train)), train


@pytest.mark.parametrize("name", NAMES)
def test_losses(name: str) -> None:
    recipe, examples = recipe_of(name)
    recipe.training = False
    batches = [examples[k : k + 3] for k in (0, 3, 0)]

    def plain(batch: list[Any]) -> list[Any]:
        _core.set_seed(3)
        dy.renew_cg()
        loss = recipe.loss(batch)
        value = loss.value()
        loss.backward()
        weights = recipe.model.parameters_list() + recipe.model.lookup_parameters_list()
        found = [np.asarray(value), *(p.grad_as_array() for p in weights)]
        for p in weights:
            p.zero_gradient()
        return found

    def compiled(batch: list[Any]) -> list[Any]:
        _core.set_seed(3)
        value = call(batch)
        weights = recipe.model.parameters_list() + recipe.model.lookup_parameters_list()
        found = [np.asarray(value), *(p.grad_as_array() for p in weights)]
        for p in weights:
            p.zero_gradient()
        return found

    call = dy.compile(lambda batch: recipe.loss(batch), backward=True)
    recorded = dy.stats()["compiled_recorded"]
    for batch in batches:
        wanted, found = plain(batch), compiled(batch)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(b).max(initial=0))))
    assert dy.stats()["compiled_recorded"] - recorded == 2
