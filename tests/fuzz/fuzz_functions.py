"""Functions in random programs: cells, loops over them, compiled functions and training steps, as text with weights,
tables, numbers and attributes from outside that the program changes later.

A function is one step of a program. What it names from outside has a number (W1, c5), its own names have none, so that
a program that is made smaller leaves out the functions whose weights it has left out.
"""

from __future__ import annotations

import collections
import copy
import functools
import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from fuzz_generate import SIZES, Generator, Skip
from fuzz_motifs import new_builder
from fuzz_names import Names, _fit, rows
from fuzz_program import Step

import dynet_lite as dy
from dynet_lite import _core

MOST = 5  # rows, labels and words are below: all tables and scores have them
MOST_LINES = 5  # of a function's body


# ---- names of these programs -----------------------------------------------------------------------------------------


def words(count: int, seed: int) -> list[int]:
    return [int(k) for k in np.random.default_rng([seed, 41]).integers(0, MOST, count)]


def tree(count: int, seed: int) -> tuple[list[Any], list[tuple[int, ...]]]:
    """Inputs and children of a tree with so many leaves, for dy.recurse."""
    rng = np.random.default_rng([seed, 43])
    inputs: list[Any] = words(count, seed)
    children: list[tuple[int, ...]] = [()] * count
    roots = list(range(count))
    while len(roots) > 1:
        k = int(rng.integers(len(roots) - 1))
        children.append((roots[k], roots.pop(k + 1)))
        roots[k] = len(inputs)
        inputs.append(int(rng.integers(MOST)))
    return inputs, children


def lengths(count: int, seed: int) -> list[int]:
    """Of sentences that have so many words together; some have none."""
    rng = np.random.default_rng([seed, 53])
    ends = np.sort(rng.integers(0, count + 1, int(rng.integers(1, 4))))
    return [int(n) for n in np.diff([0, *ends, count])]


def through(state: Any, xs: Any, sizes: list[int], reverse: bool) -> Any:
    """What a recurrent builder gives for sentences: in one call, or a sentence at a time where functions simply run."""
    if not _core.cells_by_hand():
        return state.transduce(xs, lengths=sizes, reverse=reverse)
    xs, out = list(xs), []
    if sum(sizes) != len(xs):
        raise ValueError("the lengths")
    for n in sizes:
        some, xs = xs[:n], xs[n:]
        out += state.transduce(some[::-1])[::-1] if reverse else state.transduce(some)
    return out


def scanned_through(cell: Any, init: Any, xs: list[Any], sizes: list[int], reverse: bool) -> list[Any]:
    """The same for scan(): h of each step, and of the last states."""
    if not _core.cells_by_hand():
        states, ends = dy.scan(cell, init, xs, reverse, lengths=sizes)
        return [s.h for s in (*states, *ends)]
    starts = np.cumsum([0, *sizes])
    each = [dy.scan(cell, init, xs[begin : begin + n], reverse) for begin, n in zip(starts, sizes, strict=False)]
    return [s.h for s in (*(s for states, _ in each for s in states), *(end for _, end in each))]


def nested(count: int, seed: int) -> Any:
    """A tree of tuples."""
    made: list[Any] = list(words(count, seed))
    rng = np.random.default_rng([seed, 47])
    while len(made) > 1:
        k = int(rng.integers(len(made) - 1))
        made[k : k + 2] = [(made[k], made[k + 1])]
    return made[0]


def flat(x: Any) -> np.ndarray:
    """All numbers of a nesting."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        return np.concatenate([np.zeros(0), *map(flat, x)])
    if hasattr(x, "h"):
        return np.concatenate([flat(x.h), flat(x.c)])
    if isinstance(x, dy.Expression):
        x = x.npvalue()
    return np.asarray(x, dtype=np.float64).ravel()


def holder(rate: float) -> SimpleNamespace:
    """An object whose attributes a function names."""
    return SimpleNamespace(rate=rate, inner=SimpleNamespace(on=True))


@dataclass
class Example:
    words: list[int]
    tag: int
    x: Any


class Faulty(dy.SimpleSGDTrainer):
    """Its update raises while it is told to."""

    bad = False

    def coefficients(self) -> tuple[float, ...]:
        if self.bad:
            raise ArithmeticError("no coefficients")
        return (self.learning_rate,)


def by_rate(one: Any, x: Any) -> Any:
    """A function that is given the object whose attribute it names."""
    return x * one.rate


HELPERS: Names = {
    "by_rate": by_rate,
    "collections": collections, "copy": copy, "functools": functools, "pickle": pickle, "Faulty": Faulty,
    "example": lambda count, seed, tag, x: Example(words(count, seed), tag, x),
    "lengths": lengths, "through": through, "scanned_through": scanned_through,
    "words": words, "tree": tree, "nested": nested, "flat": flat, "holder": holder, "at": int, "deep": int,
    "mode": lambda k: "ab"[k % 2], "fit": lambda e, n, batch=1: _fit(dy, e, (n,), e.dim()[1]),
}  # fmt: skip


# ---- bodies ----------------------------------------------------------------------------------------------------------


class Function:
    """The text of a function in the making: vectors of one size, and integers."""

    def __init__(self, g: Generator, n: int, head: str, vectors: list[str], integers: list[str]) -> None:
        self.g, self.n, self.vectors, self.integers = g, n, list(vectors), integers
        self.lines = [f"def {head}:"]

    def one(self) -> str:
        return str(self.g.one(self.vectors[-3:]))

    def add(self, text: str) -> str:
        name = f"v_{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        self.vectors.append(name)
        return name

    def body(self) -> None:
        for _ in range(1 + self.g.below(MOST_LINES)):
            self.add(self.line())

    def line(self) -> str:
        g, n = self.g, self.n
        a, b, k = self.one(), self.one(), g.one([*self.integers, "1"])
        W, c, T, j = g.weight(n, n), g.weight(n), g.table(n)[0], g.below(n)
        ways = [
            f"dy.tanh({W} * {a} + {c})", f"dy.affine_transform([{c}, {W}, {a}, {g.weight(n, n)}, {b}])", f"dy.softmax({W} * {a})",
            f"dy.cmult({a}, dy.logistic({b}))", f"dy.tanh({T}[{k}] + {a})", f"dy.tanh({W} * {T}[{k}]) + {a}",
            f"dy.tanh(dy.esum({T}.rows([{k}, 1])) - {a})", f"dy.cmult({a}, inp({g.seed()}, ({n},)))", f"dy.nobackprop({a}) * 0.5 + {b}",
            f"dy.pick_range(dy.concatenate([{a}, {b}]), {j}, {j + n})", f"dy.rectify({a} - {b}) + 0.1",
            f"dy.tanh(dy.lookup({T}, {k}, update=False) * 2)", f"dy.tanh(dy.sum_elems({a}) + {b})", f"dy.tanh({a} * {b}[{k} % {n}])",
            f"dy.tanh({W} * dy.concatenate_cols([{a}, {b}]) * inp({g.seed()}, (2,)))", f"dy.tanh(dy.pick({a}, 1) * {b})",
            f"dy.tanh(dy.average([{a}, {b}, {c}]))",
        ]  # fmt: skip
        if g.chance(0.5):
            ways = [f"{a} * {outside(g, 'G')} + {b}", f"{a} * {outside(g, 'O')}.rate", f"by_rate({outside(g, 'O')}, {a})", f"dy.dropout({a}, 0.3)", f"dy.noise({a}, 0.1)",
                    f"({a} if {outside(g, 'O')}.inner.on else dy.tanh({b}))"]  # fmt: skip
            made = [name for name in cells(g, n) if name.startswith("c")]
            ways += [
                w for name in made[-3:] for w in (f"{name}({a}, {k})", f"dy.esum(dy.map({name}, [{a}, {b}], [{k}, 1]))")
            ]
            made = [name for name in g.env if name.startswith("B") and name[-1] == str(n)]
            ways += [f"{name}.initial_state().add_inputs([{a}, {b}])[-1].output()" for name in made]
            if g.chance(0.4):
                label = g.one(rows())
                given = ", ".join(g.one([a, b, "None"]) for _ in rows()[label].args)
                ways = [f"dy.tanh(fit(op({label!r}, {g.seed() % 20}, {given}), {n}))"]
        text = str(g.one(ways))
        return f"{text} if which == 'a' else {a} * 0.3" if "which" in self.lines[0] and g.chance(0.3) else text

    def done(self, result: str, decorator: str = "") -> str:
        return "\n".join([*([decorator] if decorator else []), *self.lines, f"    return {result}"])


def outside(g: Generator, letter: str) -> str:
    """A number or an object that functions name."""
    found = [name for name in g.env if name.startswith(letter) and name[1:].isdigit()]
    if not found or (len(found) < 3 and g.chance(0.3)):
        name = g.name(letter)
        g.do(f"{name} = {'float(0.5)' if letter == 'G' else 'holder(0.5)'}")
        return name
    return str(g.one(found))


def cells(g: Generator, n: int) -> list[str]:
    """The cells of vectors of this size, whose names end so: c104 is a cell of vectors of 4, s a step, r a node, q a
    loss."""
    return [name for name in g.env if name[0] in "csrq" and name[1:].isdigit() and len(name) > 2 and name[-1] == str(n)]


def cell(g: Generator, letter: str, n: int) -> str:
    """A cell of this kind: one that is there, or a new one."""
    made = [name for name in cells(g, n) if name[0] == letter]
    if made and g.chance(0.6):
        return str(g.one(made))
    g.count += 1
    name = f"{letter}{g.count}0{n}"
    if letter == "c":
        f = Function(g, n, f"{name}(x, k, depth=1, which='a')", ["x"], ["k"])
        f.body()
        f.lines += [
            "    for _ in range(depth):",
            f"        {f.vectors[-1]} = dy.tanh({g.weight(n, n)} * {f.vectors[-1]})",
        ]
        text = f.done(f.vectors[-1], "@dy.cell")
    elif letter == "s":
        f = Function(g, n, f"{name}(s, k)", ["s.h", "s.c"], ["k"])
        f.body()
        text = f.done(f"dy.state(h=dy.tanh({f.vectors[-1]}), c={f.one()})", "@dy.cell")
    elif letter == "r":
        f = Function(g, n, f"{name}(k, left=None, right=None)", [f"dy.tanh({g.table(n)[0]}[k])"], ["k"])
        f.body()
        leaf = f.vectors[-1]
        f.lines += ["    if left is None:", f"        return dy.state(h={leaf}, c=dy.tanh({leaf}))"]
        f.vectors += ["left.h", "right.h", "right.c"]
        f.body()
        text = f.done(f"dy.state(h=dy.tanh({f.vectors[-1]}), c=left.c + {f.one()})", "@dy.cell")
    else:
        f = Function(g, n, f"{name}(x, k)", ["x"], ["k"])
        f.body()
        scores = f"{g.weight(MOST, n)} * {f.vectors[-1]}"
        text = f.done(g.one([f"dy.pickneglogsoftmax({scores}, k)", f"dy.hinge({scores}, k)", f"-dy.log(dy.pick(dy.softmax({scores}), k))"]),
                      "@dy.cell")  # fmt: skip
    g.do(text)
    return name


# ---- calls -----------------------------------------------------------------------------------------------------------


def at(g: Generator) -> str:
    return f"at({g.below(MOST)})"


def call(g: Generator) -> None:
    n = g.one(SIZES)
    name = cell(g, "c", n)
    for _ in range(1 + g.below(3)):
        batch = g.one([1, 1, 1, 2])
        how = g.one(["", "", "", f", depth=deep({g.below(3)})", f", which=mode({g.below(2)})"])
        g.make(f"{name}({g.vector(n, batch)}, {at(g)}{how})")


def mapped(g: Generator) -> None:
    n = g.one(SIZES)
    count = 1 + g.below(3)
    name, xs = cell(g, "c", n), [g.vector(n) for _ in range(count)]
    made = g.name("y")
    g.do(f"{made} = dy.map({name}, [{', '.join(xs)}], words({count}, {g.seed()}))")
    g.make(g.one([f"{made}[-1]", f"dy.esum({made})", f"{made}[0]"]))
    if g.chance(0.7):
        q = cell(g, "q", n)
        g.losses.append(g.make(f"dy.esum(dy.map({q}, {made}, words({count}, {g.seed()})))", "l", keep=False))
    if g.chance(0.7):
        g.do(f"del {made}")


def scanned(g: Generator) -> None:
    n = g.one(SIZES)
    name, h, c = cell(g, "s", n), g.vector(n), g.vector(n)
    made, seed, count = g.name("y"), g.seed(), 1 + g.below(4)
    if g.chance(0.3):
        B = g.name("b")
        g.do(f"{B} = dy.CellBuilder({name})")
        g.do(f"{made} = {B}.initial_state(dy.state(h={h}, c={c})).transduce(words({count}, {seed}))")
        g.make(f"{made}[-1].h")
        g.do(f"del {B}")
    else:
        g.do(f"{made} = dy.scan({name}, dy.state(h={h}, c={c}), words({count}, {seed}))")
        g.make(g.one([f"{made}[1].h", f"{made}[0][0].c", f"dy.esum([s.h for s in {made}[0]])"]))
        if g.chance(0.4):
            q = cell(g, "q", n)
            g.losses.append(g.make(f"dy.esum([{q}(s.h, {at(g)}) for s in {made}[0]])", "l", keep=False))
    if g.chance(0.7):
        g.do(f"del {made}")


def sentences(g: Generator) -> None:
    """Several sentences in one call, and uses of the list that comes of it."""
    n, made, count = g.one(SIZES), g.name("y"), 1 + g.below(5)
    words_, sizes, back = f"words({count}, {g.seed()})", f"lengths({count}, {g.seed()})", g.chance(0.4)
    if g.chance(0.3):
        g.do(
            f"{made} = scanned_through({cell(g, 's', n)}, dy.state(h={g.vector(n)}, c={g.vector(n)}), {words_}, {sizes}, {back})"
        )
    else:
        name, (table, *_) = new_builder(g, n), g.table(n)
        xs = g.one([f"{table}.rows({words_})", f"[{table}[k] for k in {words_}]", f"[{g.vector(n)}] * len({words_})"])
        g.do(f"{made} = through({name}.initial_state(), {xs}, {sizes}, {back})")
        if g.chance(0.3):
            g.do(f"{made} = through({name}.initial_state(), {made}, {sizes}, {not back})")
    if g.chance(0.4):
        c, x = cell(g, "c", n), g.one([made, f"{made}[::-1]", f"{made}[:]"])
        g.do(f"{made} = dy.map({c}, {x}, [at({g.below(MOST)})] * len({made}))")
    for _ in range(1 + g.below(2)):
        g.make(g.one([f"{made}[-1]", f"{made}[0]", f"dy.esum({made})", f"dy.esum({made}[::2])", f"dy.average([*{made}, {made}[0]])",
                      f"dy.sum_batches(dy.concatenate_to_batch({made}))", f"dy.esum({made} + {made}[1:])"]))  # fmt: skip
    if g.chance(0.5):
        q = cell(g, "q", n)
        g.losses.append(g.make(f"dy.esum(dy.map({q}, {made}, [at({g.below(MOST)})] * len({made})))", "l", keep=False))
    if g.chance(0.7):
        g.do(f"del {made}")


def recursed(g: Generator) -> None:
    n = g.one(SIZES)
    name, made = cell(g, "r", n), g.name("y")
    g.do(f"{made} = dy.recurse({name}, *tree({1 + g.below(4)}, {g.seed()}))")
    g.make(f"{made}[-1].h")
    if g.chance(0.3):
        g.make(f"{made}[0].c")
    g.do(f"del {made}")


def compiled(g: Generator) -> None:
    """A compiled function, and calls of it: in the middle of a graph that it has nothing to do with."""
    made = [name for name in g.env if name[0] == "f" and name[1:].isdigit()]
    name = g.one(made) if made and g.chance(0.6) else new_compiled(g)
    for _ in range(1 + g.below(3)):
        n, kept = int(name[-1]), g.name("k")
        which = g.one(["", "", f", which=mode({g.below(2)})"])
        g.do(
            f"{kept} = {name}(words({1 + g.below(3)}, {g.seed()}), {at(g)}, A({g.seed()}, {n}), nested({1 + g.below(3)}, {g.seed()}){which})"
        )
        g.do(f"see(flat({kept}))")
        if g.chance(0.3):
            g.do(f"see({g.one(w for names in g.weights.values() for w in names)}.grad_as_array())")
        if g.chance(0.3):
            g.do(f"see(flat({kept}))")


def new_compiled(g: Generator) -> str:
    n = g.one(SIZES)
    g.count += 1
    plain, name = f"d{g.count}0{n}", f"f{g.count}0{n}"
    f = Function(g, n, f"{plain}(words, tag, x, nest, which='a')", ["x"], ["tag"])
    f.body()
    c, T = cell(g, "c", n), g.table(n)[0]
    s = cell(g, "s", n)
    f.add(g.one([f"dy.esum([{c}({f.one()}, word) for word in words])", f"dy.esum(dy.map({c}, [{f.one()}] * len(words), words))",
                 f"dy.scan({s}, dy.state(h={f.one()}, c={f.one()}), words)[1].h", f"dy.tanh(dy.esum([{T}[word] for word in words]))"]))  # fmt: skip
    f.lines += ["    def inside(t):",
                f"        return dy.tanh({g.weight(n, n)} * (inside(t[0]) + inside(t[1]))) if isinstance(t, tuple) else {T}[t]"]  # fmt: skip
    f.vectors.append("inside(nest)")
    f.body()
    last = f.vectors[-1]
    q = cell(g, "q", n)
    loss = g.one(
        [f"{q}({last}, tag)", f"dy.pickneglogsoftmax({g.weight(MOST, n)} * {last}, tag)", f"score({last}, {g.seed()})"]
    )
    g.do(f.done(g.one([f"{loss}, {last}", loss, f"{loss}, {{'last': {last}, 'x': [{f.one()}]}}"])))
    how = g.below(3)
    if how == 0:
        tr = g.name("tr")
        g.do(f"{tr} = dy.{g.one(['SimpleSGD', 'MomentumSGD'])}Trainer(m0, 0.03)")
        g.do(f"{name} = dy.compile({plain}, trainer={tr}, structures={g.one([2, 128])})")
    else:
        g.do(f"{name} = dy.compile({plain}{', backward=True' if how == 1 else ''})")
    return name


def mistaken(g: Generator) -> None:
    """A call that raises: an index or a shape that does not fit, somewhere in a loop."""
    n = g.one(SIZES)
    name, x = cell(g, g.one("cq"), n), g.vector(n)
    wrong = g.leaf({3: 8, 8: 3}[n])
    text = g.one([f"{name}({x}, 99)", f"{name}({wrong}, 1)", f"dy.map({name}, [{x}, {x}, {x}], [1, 2, 99])",
                  f"dy.map({name}, [{x}, {wrong}], [1, 2])", f"{name}({x}, 'no')"])  # fmt: skip
    g.steps.append(Step(text))


CALLS = (call, call, mapped, mapped, scanned, sentences, recursed, compiled, compiled, mistaken)


def functions(g: Generator, count: int) -> None:
    """Some calls of functions."""
    for _ in range(count):
        motif = g.one(CALLS)
        try:
            motif(g)
        except Skip:
            continue
