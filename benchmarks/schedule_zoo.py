"""Structures whose batches are hard to choose, or easy, for schedules.py: one function each, which gives the losses of an
example from a source of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import dynet_lite as dy

WORDS = 50


class Parts:
    """Weights and builders that the structures share; all vectors are of one size."""

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.model = model = dy.ParameterCollection()
        self.E = model.add_lookup_parameters((WORDS, size))
        self.chars = model.add_lookup_parameters((30, size))
        self.W = [model.add_parameters((size, size)) for _ in range(12)]
        self.V = [model.add_parameters((size, 2 * size)) for _ in range(6)]
        self.b = model.add_parameters(size)
        self.lstm = [dy.VanillaLSTMBuilder(1, size, size, model) for _ in range(4)]
        self.gru = dy.GRUBuilder(1, size, size, model)

    def words(self, rng: Random, least: int, most: int) -> list[Any]:
        return [self.E[rng.randrange(WORDS)] for _ in range(rng.randint(least, most))]

    def loss(self, x: Any, rng: Random, W: Any = None) -> Any:
        return dy.pickneglogsoftmax((self.W[0] if W is None else W) * x, rng.randrange(self.size))

    def both(self, k: int, left: Any, right: Any) -> Any:
        return dy.tanh(self.V[k] * dy.concatenate([left, right]))


def random_tree(rng: Random, leaves: int) -> Any:
    """Nested pairs over None."""
    if leaves == 1:
        return None
    k = rng.randint(1, leaves - 1)
    return random_tree(rng, k), random_tree(rng, leaves - k)


def tagger(p: Parts, rng: Random) -> list[Any]:
    xs = p.words(rng, 5, 30)
    fs, bs = p.lstm[0].initial_state().transduce(xs), p.lstm[1].initial_state().transduce(xs[::-1])[::-1]
    return [p.loss(dy.tanh(p.V[0] * dy.concatenate([f, b])), rng) for f, b in zip(fs, bs, strict=True)]


def characters(p: Parts, rng: Random) -> list[Any]:
    words = []
    for _ in range(rng.randint(4, 15)):
        letters = [p.chars[rng.randrange(30)] for _ in range(rng.randint(1, 9))]
        words.append(p.lstm[0].initial_state().transduce(letters)[-1])
    hs = p.lstm[1].initial_state().transduce(words)
    return [p.loss(h, rng) for h in hs]


def attention(p: Parts, rng: Random) -> list[Any]:
    source = dy.concatenate_cols(p.lstm[0].initial_state().transduce(p.words(rng, 4, 15)))
    state, context, losses = p.lstm[1].initial_state(), p.E[0], []
    for x in p.words(rng, 4, 15):
        state = state.add_input(x + context)
        context = source * dy.softmax(dy.transpose(source) * state.output())
        losses.append(p.loss(dy.tanh(p.V[0] * dy.concatenate([state.output(), context])), rng))
    return losses


def documents(p: Parts, rng: Random) -> list[Any]:
    sentences = [p.lstm[0].initial_state().transduce(p.words(rng, 3, 20))[-1] for _ in range(rng.randint(2, 7))]
    return [p.loss(p.lstm[1].initial_state().transduce(sentences)[-1], rng)]


def shared_encoder(p: Parts, rng: Random) -> list[Any]:
    hs = p.lstm[0].initial_state().transduce(p.words(rng, 5, 25))
    task = rng.randrange(3)
    if task == 0:
        return [p.loss(h, rng, p.W[1]) for h in hs]
    above = p.lstm[task].initial_state().transduce(hs)
    return [p.loss(h, rng, p.W[2]) for h in above] if task == 1 else [p.loss(above[-1], rng, p.W[3])]


def tree(p: Parts, rng: Random) -> list[Any]:
    losses: list[Any] = []
    tree_node(p, rng, random_tree(rng, rng.randint(4, 20)), 1, losses)
    return losses


def tree_node(p: Parts, rng: Random, t: Any, cells: int, losses: list[Any]) -> Any:
    """A node by one of so many cells; adds the losses of all nodes under it, and its own."""
    if t is None:
        h = p.E[rng.randrange(WORDS)]
    else:
        left, right = (tree_node(p, rng, part, cells, losses) for part in t)
        h = p.both(rng.randrange(cells), left, right)
    losses.append(p.loss(h, rng))
    return h


def two_cells(p: Parts, rng: Random) -> list[Any]:
    losses: list[Any] = []
    tree_node(p, rng, random_tree(rng, rng.randint(4, 20)), 2, losses)
    return losses[-1:]


def modules(p: Parts, rng: Random) -> list[Any]:
    """A network of modules: three that change what they get, three that join two."""
    return [p.loss(p.both(5, module(p, rng, 6), module(p, rng, 6)), rng)]


def module(p: Parts, rng: Random, depth: int) -> Any:
    k = rng.randrange(7) if depth else 6
    if k == 6:
        return p.E[rng.randrange(WORDS)]
    below = [module(p, rng, depth - 1) for _ in range(1 if k < 3 else 2)]
    return dy.tanh(p.W[k] * below[0]) if k < 3 else p.both(k - 3, *below)


def n_ary(p: Parts, rng: Random) -> list[Any]:
    return [p.loss(dy.esum([n_ary_node(p, rng, 4), n_ary_node(p, rng, 4)]), rng)]


def n_ary_node(p: Parts, rng: Random, depth: int) -> Any:
    below = [p.W[2] * n_ary_node(p, rng, depth - 1) for _ in range(rng.randrange(5) if depth else 0)]
    x = p.W[1] * p.E[rng.randrange(WORDS)]
    return dy.tanh(dy.esum([x, *below]) if below else x)


def lattice(p: Parts, rng: Random) -> list[Any]:
    """Characters in a row; words span several of them, and enter where they end."""
    n = rng.randint(8, 25)
    cells: list[Any] = []
    words: dict[int, list[Any]] = {}
    h = p.E[0]
    for i in range(n):
        x = p.chars[rng.randrange(30)]
        h = dy.tanh(p.W[1] * h + p.W[2] * x + p.b)
        if i in words:
            gates = [dy.logistic(p.W[3] * x + p.W[4] * w) for w in words[i]]
            h = dy.esum([h, *[dy.cmult(g, w) for g, w in zip(gates, words[i], strict=True)]])
        cells.append(h)
        for span in (1, 2, 3):
            if rng.random() < 0.25 and i + span < n:
                word = dy.tanh(p.W[5] * h + p.W[6] * p.E[rng.randrange(WORDS)])
                words.setdefault(i + span, []).append(word)
    return [p.loss(c, rng) for c in cells]


def messages(p: Parts, rng: Random) -> list[Any]:
    """Four rounds of averages over the neighbours in a random graph."""
    n = rng.randint(5, 15)
    near = [[j for j in range(n) if j != i and rng.random() < 0.25] or [i] for i in range(n)]
    hs = [p.E[rng.randrange(WORDS)] for _ in range(n)]
    for _ in range(4):
        hs = [dy.tanh(p.W[1] * hs[i] + p.W[2] * dy.average([hs[j] for j in near[i]])) for i in range(n)]
    return [p.loss(h, rng) for h in hs]


def stack(p: Parts, rng: Random) -> list[Any]:
    """A stack LSTM parser: shift and reduce at random; states of the stack go back to before what was taken off."""
    buffer, losses = p.words(rng, 4, 15), []
    states, items = [p.lstm[0].initial_state().add_input(p.E[0])], []
    actions = p.lstm[1].initial_state().add_input(p.E[1])
    while buffer or len(items) > 1:
        top = states[-1].output()
        losses.append(p.loss(dy.tanh(p.V[0] * dy.concatenate([top, actions.output()])), rng))
        shift = bool(buffer) and (len(items) < 2 or rng.random() < 0.5)
        if shift:
            items.append(buffer.pop())
        else:
            right, left = items.pop(), items.pop()
            del states[-2:]
            items.append(p.both(1, left, right))
        states.append(states[-1].add_input(items[-1]))
        actions = actions.add_input(p.E[2 + shift])
    return losses


def graphs(p: Parts, rng: Random) -> list[Any]:
    """Directed acyclic graphs: a node reads one or two of the last five."""
    hs = p.words(rng, 3, 3)
    for _ in range(rng.randint(5, 25)):
        left, right = rng.choice(hs[-5:]), rng.choice(hs[-5:])
        hs.append(p.both(0, left, right) if rng.random() < 0.6 else dy.tanh(p.W[1] * left))
    return [p.loss(hs[-1], rng)]


def mixed_sequence(p: Parts, rng: Random) -> list[Any]:
    """A sequence in which each step is one of four cells, as languages change within a text."""
    h, losses = p.E[0], []
    for x in p.words(rng, 5, 25):
        h = p.both(rng.randrange(4), h, x)
        losses.append(p.loss(h, rng))
    return losses


def skipping(p: Parts, rng: Random) -> list[Any]:
    """Two layers of which the upper one reads at some words only and tells the lower one."""
    low, high, losses = p.E[0], p.E[1], []
    for x in p.words(rng, 5, 25):
        low = p.both(0, low, x + high)
        if rng.random() < 0.3:
            high = p.both(1, high, low)
        losses.append(p.loss(low, rng))
    return losses


STRUCTURES: dict[str, Callable[[Parts, Random], list[Any]]] = {
    "tagger": tagger,
    "words of letters": characters,
    "attention": attention,
    "documents": documents,
    "shared encoder": shared_encoder,
    "trees": tree,
    "trees of two cells": two_cells,
    "module networks": modules,
    "n-ary sums": n_ary,
    "lattices": lattice,
    "messages": messages,
    "stack parser": stack,
    "acyclic graphs": graphs,
    "mixed sequences": mixed_sequence,
    "skipping layers": skipping,
}
