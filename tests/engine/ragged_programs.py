"""Programs whose examples differ in a length, such as decoders that look back at sources: random ones from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fused_programs import Built, Model

import dynet_lite as dy

H = 12


def additive(model: Model, source: Any, keys: Any, query: Any) -> Any:
    """Weights of the columns, as Bahdanau's attention has them: {n,1}."""
    scores = model.weight("v", 1, H) * dy.tanh(dy.colwise_add(keys, model.weight("Q", H, H) * query))
    return dy.softmax(dy.transpose(scores))


def dotted(model: Model, source: Any, keys: Any, query: Any) -> Any:
    """The same of products of columns with the query: {n}."""
    return dy.softmax(dy.transpose(keys) * query)


def logarithms(model: Model, source: Any, keys: Any, query: Any) -> Any:
    return dy.exp(dy.log_softmax(dy.transpose(keys) * query)) + 0.125


KINDS: tuple[Callable[[Model, Any, Any, Any], Any], ...] = (additive, dotted, logarithms)


def decoded(model: Model, lengths: list[int], steps: int, kind: Callable[[Model, Any, Any, Any], Any]) -> Any:
    """The loss of decoders that take some steps, over sources of these lengths, and weigh their columns in one way."""
    losses = []
    for k, n in enumerate(lengths):
        source = dy.inputTensor(np.random.default_rng(k).uniform(-1, 1, (H, n)))
        keys, state = model.weight("K", H, H) * source, model.weight("s", H) + dy.inputVector(np.full(H, k))
        for _ in range(steps):
            state = dy.tanh(source * kind(model, source, keys, state))
        losses.append(dy.sum_elems(state))
    return dy.esum(losses)


class Sources:
    """Each example has a source of some words, and takes steps that look at it. What an example does depends on the seed,
    how often and over how many words on the example."""

    def __init__(self, seed: int, examples: int = 6, held: bool = False) -> None:
        """held: expressions refer to what is in between."""
        self.seed, self.examples, self.held = seed, examples, held

    def __call__(self, model: Model) -> Built:
        built = Built([], None)
        for k in range(self.examples):
            built.losses.append(self.example(model, k, built))
        built.loss = dy.esum(built.losses)
        return built

    def source(self, model: Model, k: int, built: Built) -> Any:
        data = np.random.default_rng([self.seed, 3, k])
        n = int(data.integers(1, 9))
        sort = np.random.default_rng([self.seed, 4]).integers(4)
        if sort == 3 and k % 2:  # some want no gradient
            return dy.nobackprop(dy.inputTensor(data.uniform(-1, 1, (H, n))))
        matrix = dy.inputTensor(data.uniform(-1, 1, (H, n)))
        built.inputs.append(matrix)
        if sort == 0:
            return matrix
        if sort == 1:
            return model.weight("S", H, H) * matrix
        return dy.concatenate_cols([dy.tanh(dy.pick(matrix, i, 1)) for i in range(n)])

    def example(self, model: Model, k: int, built: Built) -> Any:
        how, data = np.random.default_rng([self.seed, 2]), np.random.default_rng([self.seed, 5, k])
        source = self.source(model, k, built)
        keys = model.weight("K", H, H) * source if how.random() < 0.7 else source
        state = dy.tanh(dy.inputVector(data.uniform(-1, 1, H)))
        terms = []
        for _ in range(int(data.integers(1, 5))):
            weights = KINDS[int(how.integers(len(KINDS)))](model, source, keys, state)
            context = source * weights
            if context.dim()[0] != (H,):
                context = dy.reshape(context, (H,))
            state = dy.tanh(model.weight("W", H, H) * context + state)
            if how.random() < 0.4:
                terms.append(dy.squared_norm(weights))
            if how.random() < 0.3:
                terms.append(dy.pick(weights, 0))
            if self.held:
                built.values += [weights, context]
        terms.append(dy.dot_product(state, dy.inputVector(data.uniform(-1, 1, H))))
        if self.held:
            built.values.append(keys)
        return dy.esum(terms)
