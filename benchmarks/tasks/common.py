"""What the files of the tasks share: named initial weights, and the base of the programs over DyNet's API.

A task's file holds

    SIZES                    {"base": {...}, "large": {...}}: the sizes of the model
    shapes(sizes)            name -> shape of each weight, DyNet's row-by-column order; names ending in "_table" are lookups
    data(rng, count, sizes)  the instances
    length(instance)         words in an instance, which is what padded batches are sorted by
    Program                  the model in DyNet's API, nothing else: one text for dynet and dynet_lite
    Idiomatic                the same model with what dynet_lite adds
    products(batch, sizes)   the matrix products of an ideal schedule, for the floor

Nothing here imports an engine: it is handed over as `dy`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

Sizes = dict[str, int]
Shapes = dict[str, tuple[int, ...]]
# Rows and inner size of a weight, and the columns of each product with it; its gradient is one product over all.
Products = list[tuple[int, int, list[int]]]


def lstm_shapes(name: str, input_dim: int, hidden: int) -> Shapes:
    """The three weights of a one-layer LSTM builder; blocks of rows i, f, o, g."""
    return {
        f"{name}.Wx": (4 * hidden, input_dim),
        f"{name}.Wh": (4 * hidden, hidden),
        f"{name}.b": (4 * hidden,),
    }


def initial_weights(shapes: Shapes, seed: int) -> dict[str, Any]:
    """The arrays that every engine begins with: tables +-0.1, matrices by Glorot's rule, biases close to 0."""
    rng = np.random.RandomState(seed)
    arrays = {}
    for name, shape in shapes.items():
        table, matrix = name.endswith("_table"), len(shape) == 2
        bound = 0.1 if table else math.sqrt(6 / sum(shape)) if matrix else 0.02
        arrays[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return arrays


def alive(lengths: Sequence[int]) -> list[int]:
    """How many sequences have a step 1, a step 2, ..."""
    return [sum(n > t for n in lengths) for t in range(max(lengths, default=0))]


def lstm_products(input_dim: int, hidden: int, lengths: Sequence[int]) -> Products:
    """An LSTM over sequences of these lengths: inputs at once, the recurrence step by step."""
    return [(4 * hidden, input_dim, [sum(lengths)]), (4 * hidden, hidden, alive(lengths)[1:])]


class Model:
    """Base of the programs: weights by name. `builder` is the name of the LSTM builder to use."""

    def __init__(
        self, dy: ModuleType, sizes: Sizes, weights: dict[str, Any], builder: str = "VanillaLSTMBuilder"
    ) -> None:
        self.dy, self.sizes, self.weights = dy, sizes, weights
        self.model = dy.ParameterCollection()
        self.builder = builder
        self.make()

    def make(self) -> None:
        """Adds the weights to the collection."""
        raise NotImplementedError

    def loss(self, instance: Any) -> Any:
        """The loss of one instance, {1}."""
        raise NotImplementedError

    def batch_loss(self, batch: Sequence[Any]) -> Any:
        """The loss of a mini-batch, {1}."""
        return self.dy.esum([self.loss(instance) for instance in batch])

    def weight(self, name: str) -> Any:
        array = self.weights[name]
        parameter = self.model.add_parameters(array.shape)
        parameter.set_value(array)
        return parameter

    def table(self, name: str) -> Any:
        array = self.weights[name]
        table = self.model.add_lookup_parameters(array.shape)
        table.init_from_array(array)
        return table

    def lstm(self, name: str) -> Any:
        arrays = [self.weights[f"{name}.{part}"] for part in ("Wx", "Wh", "b")]
        hidden, input_dim = arrays[1].shape[1], arrays[0].shape[1]
        builder = getattr(self.dy, self.builder)(1, input_dim, hidden, self.model)
        for parameter, array in zip(builder.get_parameters()[0], arrays, strict=True):
            parameter.set_value(array)
        return builder
