"""What a program does with its graphs: losses, backward passes, gradients, updates, changes of weights, points to go back to."""

from __future__ import annotations

import numpy as np
from fuzz_generate import Generator, Skip
from fuzz_motifs import expressions
from fuzz_program import Program, Step
from fuzz_ways import PLAIN, setting

import dynet_lite as dy
from dynet_lite import _core, structure

# Their arguments. With the usual epsilon, a gradient that is zero but for rounding moves a weight as far as any other.
TRAINERS = {
    "SimpleSGDTrainer": "0.1", "MomentumSGDTrainer": "0.05", "AdagradTrainer": "0.1, 1e-4", "AdamTrainer": "0.05, eps=1e-2",
    "RMSPropTrainer": "0.01, 1e-4", "AmsgradTrainer": "0.05, eps=1e-2", "CyclicalSGDTrainer": "", "AdadeltaTrainer": "",
}  # fmt: skip


def trainer(g: Generator) -> None:
    name, kind = g.name("tr"), g.one(TRAINERS)
    if g.peer:  # the others update rows without a gradient in DyNet, or differ by design (docs/coming_from_dynet.md)
        kind = "SimpleSGDTrainer"
    g.do(f"{name} = dy.{kind}({', '.join(['m0', *filter(None, [TRAINERS[kind]])])})")
    if g.chance(0.2):
        g.do(f"{name}.set_clip_threshold({g.one([0.5, 0, 1e6])})")
    if not g.peer and g.chance(0.2):
        g.do(f"{name}.set_sparse_updates(False)")


def a_loss(g: Generator) -> str:
    """A loss of this graph: of what is there, or one that was made before."""
    if g.losses and g.chance(0.3):
        return str(g.one(g.losses))
    terms = [f"score({e}, {g.seed()})" for e in g.live[-12:] if g.chance(0.5)] + [x for x in g.losses if g.chance(0.5)]
    if not terms:
        terms = [f"score({g.some()}, {g.seed()})"]
    g.losses.append(g.make(f"dy.esum([{', '.join(terms)}])", "l", keep=False))
    return g.losses[-1]


def anything(g: Generator) -> str:
    """Something that has a gradient."""
    weights, tables = [w for names in g.weights.values() for w in names], [t for t, _, _ in g.tables]
    if g.peer:  # there, what was not in the graph has none; ours refuses that of a weight after an update
        tables, weights = [], [w for w in weights if w in g.graded and not g.changed]
    return str(
        g.one(
            [
                *g.live[-20:],
                *([] if g.peer else g.losses[-2:]),
                *([g.one(weights)] if weights else []),
                *([g.one(tables)] if tables else []),
            ]
        )
    )


def backward(g: Generator) -> None:
    loss = a_loss(g)
    if g.chance(0.6):
        g.do(f"see({loss}.value())")
    g.do(f"{loss}.backward({'full=True' if g.chance(0.2) else ''})")
    g.graded = set(g.used)
    for _ in range(g.below(4)):
        g.maybe(lambda: gradient(g))


def gradient(g: Generator) -> None:
    if g.peer and not g.graded:
        raise Skip
    name = anything(g)
    if g.peer and reads_otherwise(g, name):
        raise Skip
    g.do(f"see({name}.gradient())")


def reads_otherwise(g: Generator, name: str) -> bool:
    """Of parts that share memory we give all that flows into the numbers, of a cell state what flows in from outside its step."""
    if name not in g.live:
        return False
    return bool(structure.read().nodes[_core.expression_node(g.env[name])[1]].sort in ("alias", "output"))


def value(g: Generator) -> None:
    name = g.some()
    if not g.peer and g.chance(0.1):
        g.do("dy.cg().forward()")
    g.do(f"see({name}.{g.one(['npvalue()', 'npvalue()', 'vec_value()', 'npvalue(recalculate=True)'])})")


def update(g: Generator) -> None:
    trainers = sorted(n for n in g.env if n.startswith("tr") and n[2:].isdigit())
    if not trainers or g.chance(0.1):
        trainer(g)
        return update(g)
    g.do(f"{g.one(trainers)}.update()")
    g.changed = True
    if g.chance(0.3):
        weights(g)
    return None


def weights(g: Generator) -> None:
    """Looks at a weight or a table, and at what has added up there."""
    if g.chance(0.5):
        g.do(
            f"see({g.table()[0]}.{g.one(['as_array()', 'grad_as_array()', 'row_as_array(2)'] if not g.peer else ['as_array()'])})"
        )
    else:
        name = g.one(w for names in g.weights.values() for w in names)
        g.do(f"see({name}.{g.one(['as_array()', 'grad_as_array()', 'npvalue()'])})")


def change(g: Generator) -> None:
    """Changes a weight, a table, or what has added up there."""
    g.changed = True
    table, rows, n = g.table()
    shape = g.one(g.weights)
    name = g.one(g.weights[shape])
    of_weight = f"{name}.set_value(A({g.seed()}, {', '.join(map(str, shape))}))"
    g.do(g.one([of_weight, of_weight, f"{name}.scale(0.9)", f"{name}.scale_gradient(0.5)", f"{name}.clip_inplace(-0.8, 0.8)",
                f"{name}.set_updated({g.one([True, g.peer or g.chance(0.5)])})", f"{table}.init_row({g.below(rows)}, A({g.seed()}, {n}))",
                f"{table}.scale(0.9)", f"{table}.init_from_array(A({g.seed()}, {rows}, {n}))", f"{table}.scale_gradient(0.5)",
                *([f"{name}.zero_gradient()", f"{table}.zero_gradient()", f"{table}.set_updated({g.one([True, False])})"]
                  if not g.peer else [])]))  # fmt: skip


def go_back(g: Generator) -> None:
    """Something is built, looked at and taken back."""
    if g.peer:  # there, weights that are made or first used meanwhile are wrong afterwards
        raise Skip
    g.do("dy.cg_checkpoint()")
    live, losses = list(g.live), list(g.losses)
    expressions(g, 1 + g.below(3))
    if g.chance(0.7):
        g.maybe(lambda: value(g))
    if g.chance(0.3):
        g.maybe(lambda: backward(g))
    g.do("dy.cg_revert()")
    new = [n for n in (*g.live, *g.losses) if n not in live and n not in losses]
    g.stale += new
    g.live, g.losses = (
        [n for n in live if n in g.env and n in g.live],
        [n for n in losses if n in g.env and n in g.losses],
    )


def old(g: Generator) -> None:
    """Uses an expression of a graph that is gone."""
    if g.peer or not g.stale:
        raise Skip
    g.steps.append(Step(f"see({g.one(g.stale)}.{g.one(['npvalue()', 'gradient()', 'backward()'])})"))


def drop(g: Generator) -> None:
    for name in list(g.live):
        if g.chance(0.3):
            g.drop(name)


def set_input(g: Generator) -> None:
    if g.peer:
        raise Skip
    name = g.make(f"dy.inputVector(A({g.seed()}, 8))")
    e = g.make(f"dy.tanh({g.weight(3, 8)} * {name})")
    if g.chance(0.5):
        g.do(f"see({e}.npvalue())")
    g.do(f"{name}.set(A({g.seed()}, 8))")
    g.do(f"see({e}.npvalue(recalculate=True))")


def set_index(g: Generator) -> None:
    """Another place of a value that was picked, which may have been read before."""
    if g.peer:
        raise Skip
    picked = [n for n in g.live if any(step.text.startswith(f"{n} = dy.pick(") for step in g.steps)]
    if not picked or g.chance(0.3):
        table, rows, n = g.table()
        x = g.hidden(f"dy.tanh({table}.batch({g.ids(rows, 4)}))")
        x = g.hidden(f"dy.reshape({x}, ({n}, 4), 1)")
        picked = [g.make(f"dy.pick({x}, {g.below(4)}, 1)")]
        g.make(f"dy.cmult(dy.sin({picked[0]}), {picked[0]})")
    name = g.one(picked)
    if g.chance(0.5):
        g.do(f"see({name}.npvalue())")
    g.do(f"{name}.set_index({g.below(3)})")
    if g.chance(0.5):
        g.do(f"see({name}.npvalue())")


ACTIONS = {backward: 8, gradient: 6, value: 5, update: 4, weights: 2, change: 2, go_back: 1, old: 1, drop: 3, set_input: 0.5, set_index: 0.7,
           Generator.wrong: 0.5, Generator.whole_table: 0.5}  # fmt: skip


def ready(g: Generator) -> None:
    """What a graph that goes on sees of new weights, DyNet decides by when a node first ran."""
    if g.peer and g.changed:
        g.renew()


def generate(seed: int, peer: bool = False, size: int = 3) -> Program:
    """A random program of up to `size` graphs."""
    with setting(PLAIN):
        g = Generator(seed, peer)
        weighed = np.array(list(ACTIONS.values())) / sum(ACTIONS.values())
        g.begin()
        for _ in range(1 + g.below(size)):
            g.renew()
            for _ in range(1 + g.below(5)):
                ready(g)
                expressions(g, 1 + g.below(6))
                for number in g.rng.choice(len(ACTIONS), 1 + g.below(5), p=weighed):
                    action = list(ACTIONS)[number]
                    if action not in (gradient, update, weights):
                        ready(g)
                    g.maybe(lambda action=action: action(g))
            g.maybe(lambda: finish(g))
        dy.renew_cg()
        return g.program()


def finish(g: Generator) -> None:
    """Looks at all there is."""
    for e in [] if g.peer and g.changed else g.live[-10:]:
        g.maybe(lambda e=e: g.do(f"see({e}.npvalue())"))
    for names in g.weights.values():
        for name in names:
            g.do(f"see({name}.as_array())")
            if not g.peer:
                g.do(f"see({name}.grad_as_array())")
    for name, _, _ in g.tables:
        g.do(f"see({name}.as_array())")
        if not g.peer:
            g.do(f"see({name}.grad_as_array())")
