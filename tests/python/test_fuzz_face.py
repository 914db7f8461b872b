"""Thousands of wrong calls of collections, parameters, trainers, graphs, settings and files: exceptions, never a crash."""

from __future__ import annotations

import inspect
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

HONEST = (TypeError, ValueError, RuntimeError, IndexError, OSError, OverflowError, MemoryError)
LEFT_OUT = {"OPTIONS", "start", "from_dynet_config", "coefficients"}


def anything(rng: random.Random, things: list[Any]) -> Any:
    plain = [None, 0, 1, -1, 2, 10**12, -(10**12), 1.5, float("nan"), float("inf"), "", "x", "/x", "a b", "good", "base", "checkpoint",
             b"x", (), (2, 3), [1, 2], [-1], [10**10], {}, object(), np.zeros((2, 3)), np.zeros((4, 3)), np.zeros(0),
             np.array(3), np.array(["a"]), np.zeros((2, 3), dtype=complex), True, range(3), iter([1, 2]), np.int64(2),
             np.float32(0.5), lambda: 0]  # fmt: skip
    return rng.choice(plain + things)


def calls(instances: list[Any], functions: list[Any]) -> list[tuple[str, Callable[..., Any]]]:
    out: list[tuple[str, Callable[..., Any]]] = [(f.__name__, f) for f in functions]
    for thing in instances:
        for name in dir(thing):
            if name.startswith("_") or name in LEFT_OUT:
                continue
            member = getattr(type(thing), name, None)
            if callable(member) and not isinstance(member, type):
                out.append((f"{type(thing).__name__}.{name}", getattr(thing, name)))
            elif isinstance(thing, types.ModuleType) and inspect.isroutine(getattr(thing, name)):
                out.append((f"{thing.__name__}.{name}", getattr(thing, name)))
    return out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_wrong_calls(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    m = dy.ParameterCollection()
    p, t = m.add_parameters((2, 3)), m.add_lookup_parameters((4, 3))
    m.save("good")
    dy.save("base", [p, t])
    dy.save_checkpoint("checkpoint", m)
    trainers = [getattr(dy, name)(m) for name in dy.trainers.__all__ if name != "Trainer"]
    classes = [getattr(dy, name) for name in dy.trainers.__all__ + dy.initializers.__all__ + ["ParameterCollection"]]
    functions = [getattr(dy, name) for name in dy.io.__all__ + dy.checkpoint.__all__ + dy.renew_cg.__globals__["__all__"] + ["lookup", "lookup_batch",
                 "inputTensor", "inputVector", "one_hot", "sparse_inputTensor", "vecInput", "zeros"]]  # fmt: skip
    before = dy.config.settings()
    for _ in range(25):
        dy.renew_cg()
        x = dy.inputVector([1.0, 2.0])
        fresh = [p, t, m, x, t[1], t.batch([1, 2]), dy.tanh(p), x.tensor_value(), dy.cg(), dy.DynetParams()]
        table = calls([*fresh, *trainers, dy.config, dy.dynet_config, dy._core.Updater("adam")], functions + classes)
        for _ in range(100):
            name, f = rng.choice(table)
            arguments = [anything(rng, fresh) for _ in range(rng.randint(0, 4))]
            try:
                f(*arguments)
            except dy.InternalError:
                raise
            except HONEST:
                pass
            except Exception as e:
                raise AssertionError(f"{name}{tuple(arguments)}") from e
        for name, value in before.items():
            dy.configure(**{name: value} if value is not None else {})
    dy.renew_cg()
    assert dy.tanh(dy.inputVector([0.0])).value() == 0
