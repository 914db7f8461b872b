"""Pieces of programs as people write them: cells by hand, losses over affine maps, attention, builders, mini-batches.

They are what the rewriting passes and the batching look for; random ops alone hardly ever make them. A motif adds steps to a
Generator and leaves its results there; `hidden` values are let go at once, so that they may run inside others.
"""

from __future__ import annotations

from fuzz_generate import SIZES, Generator, Skip

ACTIVATIONS = ("tanh", "logistic", "rectify", "softsign", "silu", "exp", "square", "log_sigmoid", "abs")


def chain(g: Generator) -> None:
    """Elementwise ops, one in the other."""
    names = [g.some()]
    for _ in range(2 + g.below(5)):
        x = names[-1]
        alike = [e for e in g.live if g.dim(e) == g.dim(x)]
        y = g.one(alike) if alike and g.chance(0.5) else x
        f = g.one(ACTIVATIONS if not g.peer else ACTIVATIONS[:3])
        text = g.one([f"dy.{f}({x})", f"dy.{f}({x})", f"dy.cmult({x}, {y})", f"{x} + {y}", f"{x} * 0.7 + 0.2", f"-{x} + 1.5", f"-{x}",
                      f"dy.esum([{x}, {y}, {x}])", f"dy.average([{y}, {x}])", f"{x} - {y}", f"dy.emax([{x}, {y} + 0.1])",
                      f"dy.nobackprop({x}) + {y}", f"dy.scale_gradient({x}, 0.5)"])  # fmt: skip
        names.append(g.hidden(text))
    g.make(f"dy.tanh({names[-1]})")
    g.drop(*(n for n in names[1:] if g.chance(0.85)))


def affine(g: Generator) -> None:
    """Sums of products, in the ways that people write them."""
    n, m, k = g.one(SIZES), g.one(SIZES), g.one(SIZES)
    batch = g.one([1, 1, 1, 2])
    x, y = g.vector(n, batch), g.vector(m, batch)
    w, u, b = g.weight(k, n), g.weight(k, m), g.weight(k)
    h = g.hidden(g.one([f"{w} * {x} + {u} * {y} + {b}", f"dy.affine_transform([{b}, {w}, {x}, {u}, {y}])", f"{w} * {x} + {b}",
                        f"dy.affine_transform([{b}, {w}, {x}])", f"dy.esum([{w} * {x}, {u} * {y}, {b}])", f"{w} * {x}",
                        f"dy.esum([{b}, {w} * {x}])"]))  # fmt: skip
    g.make(f"dy.{g.one(['tanh', 'softmax', 'logistic'])}({h})")
    if g.chance(0.8):
        g.drop(h)


def cell(g: Generator) -> None:
    """Steps of an LSTM or of a gated unit by hand."""
    n = g.one(SIZES)
    w = {k: (g.weight(n, n), g.weight(n, n), g.weight(n)) for k in "ifog"}
    h, c = g.vector(n), g.vector(n)
    for _ in range(1 + g.below(3)):
        x = g.vector(n)
        gates = {}
        for k, (wx, wh, b) in w.items():
            affine_ = g.one([f"{wx} * {x} + {wh} * {h} + {b}", f"dy.affine_transform([{b}, {wx}, {x}, {wh}, {h}])"])
            gates[k] = g.hidden(f"dy.{'tanh' if k == 'g' else 'logistic'}({affine_})")
        c = g.make(f"dy.cmult({gates['f']}, {c}) + dy.cmult({gates['i']}, {gates['g']})")
        h = g.make(f"dy.cmult({gates['o']}, dy.tanh({c}))")
        g.drop(*gates.values())
    if g.chance(0.5):
        g.drop(c)


def loss(g: Generator) -> None:
    """A loss over scores of an affine map, for one example or a mini-batch."""
    n, k, batch = g.one(SIZES), g.one((5, 12)), g.one([1, 1, 3])
    x = g.vector(n, batch)
    out, c = g.weight(k, n), g.weight(k)
    scores = g.hidden(g.one([f"dy.affine_transform([{c}, {out}, {x}])", f"{out} * {x} + {c}", f"{out} * {x}"]))
    labels = [g.below(k) for _ in range(batch)]
    if batch > 1:
        text = g.one([f"dy.pickneglogsoftmax_batch({scores}, {labels})", f"dy.hinge_batch({scores}, {labels})",
                      f"dy.pick_batch(dy.log_softmax({scores}), {labels})"])  # fmt: skip
        text = f"dy.sum_batches({text})"
    else:
        text = g.one([f"dy.pickneglogsoftmax({scores}, {labels[0]})", f"dy.hinge({scores}, {labels[0]})",
                      f"-dy.log(dy.pick(dy.softmax({scores}), {labels[0]}))"])  # fmt: skip
    g.losses.append(g.make(text, "l", keep=False))
    if g.chance(0.8):
        g.drop(scores)
    elif scores in g.env:
        g.live.append(scores)


def words(g: Generator) -> None:
    """Products of concatenated words, some of them the same."""
    n, k = g.one(SIZES), g.one(SIZES)
    a, b = g.leaf(n), g.vector(n)
    w, bias = g.weight(k, 2 * n), g.weight(k)
    both = g.hidden(f"dy.concatenate([{a}, {b}])")
    g.make(
        f"dy.tanh({g.one([f'{w} * {both}', f'{w} * {both} + {bias}', f'dy.affine_transform([{bias}, {w}, {both}])'])})"
    )
    g.make(f"dy.softmax({g.weight(k, 2 * n)} * {both})")
    g.drop(both)


def attention(g: Generator) -> None:
    n = g.one(SIZES)
    keys = g.hidden(f"dy.concatenate_cols([{', '.join(g.vector(n) for _ in range(2 + g.below(3)))}])")
    query, v, w = g.vector(n), g.weight(1, n), g.weight(n, n)
    scores = g.hidden(f"{v} * dy.tanh(dy.colwise_add({g.one([keys, f'{w} * {keys}'])}, {query}))")
    g.make(f"{keys} * dy.softmax(dy.transpose({scores}))")
    g.drop(keys, scores)


def batches(g: Generator) -> None:
    """Single vectors become a mini-batch, and parts of it are taken again."""
    n, m = g.one(SIZES), g.one(SIZES)
    xs = [g.vector(n) for _ in range(2 + g.below(3))]
    many = g.hidden(f"dy.concatenate_to_batch([{', '.join(xs)}])")
    h = g.make(f"dy.tanh({g.weight(m, n)} * {many} + {g.weight(m)})")
    g.make(
        g.one(
            [
                f"dy.pick_batch_elem({h}, 1)",
                f"dy.sum_batches({h})",
                f"dy.pick_batch_elems({h}, [1, 0])",
                f"dy.mean_batches({h})",
            ]
        )
    )
    if g.chance(0.8):
        g.drop(many)


def shapes(g: Generator) -> None:
    """Aliases and parts."""
    x = g.some()
    dims, b = g.dim(x)
    size = 1
    for d in dims:
        size *= d
    flat = g.make(f"dy.reshape({x}, ({size},), {b})")
    n = 1 + g.below(size)
    g.make(f"dy.pick_range({flat}, {n - 1}, {size})")
    g.make(f"{flat}[{n - 1}]" if b == 1 else f"dy.pick({flat}, {n - 1})")
    if g.chance(0.5):
        g.drop(flat)


def table(g: Generator) -> None:
    """One table, read in several ways."""
    name, rows, n = g.table()
    ids = g.ids(rows, 1 + g.below(6))
    single = [g.make(f"{name}[{i}]") for i in ids[:3]]
    many = g.make(g.one([f"{name}.batch({ids})", f"dy.lookup_batch({name}, {ids})"]))
    g.make(f"dy.sum_batches(dy.square({many}))")
    g.make(f"dy.tanh(dy.esum([{', '.join(single)}]))")
    if g.chance(0.4):
        g.whole_table()
    if not g.peer and g.chance(0.3):
        made = g.name("r")
        g.do(f"{made} = {name}.rows({ids})")
        g.make(f"dy.tanh(dy.esum({made}))")
    if not g.peer and g.chance(0.2):  # in DyNet everything is computed again
        g.do(f"{single[0]}.set({g.ids(rows, 1)[0]})")


BUILDERS = ("VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder", "CoupledLSTMBuilder", "CompactVanillaLSTMBuilder",
            "FastLSTMBuilder")  # fmt: skip
BUILDERS_OF_DYNET = ("VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder", "CoupledLSTMBuilder")


def new_builder(g: Generator, n: int = 0) -> str:
    """The name of a builder of n numbers, if n is given: one that is there, or a new one."""
    made = sorted(name for name in g.env if name[0] == "B" and name[1:].isdigit() and (not n or name.endswith(f"0{n}")))
    if made and g.chance(0.7):
        return g.one(made)
    n = n or g.one(SIZES)
    name = f"B{g.count + 1}0{n}"
    g.count += 1
    kind, seed = g.one(BUILDERS_OF_DYNET if g.peer else BUILDERS), g.seed()
    g.do(f"{name} = builder('{kind}', m0, {seed}, {g.one([1, 1, 2])}, {n}, {n})")
    return name


def builder(g: Generator) -> None:
    """Sequences through a builder, a word at a time or all at once."""
    name = new_builder(g)
    n = int(name[-1])
    batch = g.one([1, 1, 1, 2])
    for _ in range(1 + g.below(3)):
        xs = ", ".join(g.vector(n, batch) for _ in range(1 + g.below(4)))
        state = g.name("s")
        g.do(f"{state} = {name}.initial_state({'update=False' if not g.peer and g.chance(0.2) else ''})")
        way = g.below(4)
        if way == 0:
            made_ = g.name("y")
            g.do(f"{made_} = {state}.transduce([{xs}])")
            g.make(f"{made_}[-1]")
            g.do(f"del {made_}")
        elif way == 1:
            g.do(f"{state} = {state}.add_inputs([{xs}])[-1]")
            g.make(f"{state}.output()")
        else:
            for x in xs.split(", "):
                g.do(f"{state} = {state}.add_input({x})")
                if g.chance(0.3):
                    g.make(f"{state}.output()")
            g.make(f"{state}.s()[{g.one([0, -1])}]")
        if g.chance(0.7):
            g.do(f"del {state}")


def tree(g: Generator) -> None:
    if g.peer:
        raise Skip
    made = sorted(n for n in g.env if n.startswith("R") and n[1:].isdigit())
    if made:
        name = g.one(made)
    else:
        name, seed = g.name("R"), g.seed()
        kind = g.one(["'NaryTreeLSTMBuilder', m0, {}, 2, 1, 8, 8", "'ChildSumTreeLSTMBuilder', m0, {}, 1, 8, 8"])
        g.do(f"{name} = builder({kind.format(seed)})")
    nodes = []
    for _ in range(2 + g.below(3)):
        nodes.append(g.name("n"))
        g.do(f"{nodes[-1]} = {name}.node({g.vector(8)})")
    while len(nodes) > 1:
        a, b = nodes.pop(g.below(len(nodes))), nodes.pop(g.below(len(nodes)))
        nodes.append(g.name("n"))
        g.do(f"{nodes[-1]} = {name}.node({g.one(['None', g.vector(8)])}, [{a}, {b}])")
        g.do(f"del {a}, {b}")
    g.make(f"{nodes[0]}.output()")


def twice(g: Generator) -> None:
    """The same ops of the same arguments again, as leaves of trees and beginnings of sentences are."""
    n = g.one(SIZES)
    name, rows, _ = g.table(n)
    w, b, u = g.weight(8, n), g.weight(8), g.weight(3, 8)
    for i in g.ids(min(rows, 3), 3):
        t = g.hidden(f"dy.tanh({w} * {name}[{i}] + {b})")
        g.make(f"dy.tanh({u} * {t})")
        g.drop(t)


def noise(g: Generator) -> None:
    if g.peer:
        raise Skip
    x = g.some()
    g.make(
        g.one(
            [
                f"dy.dropout({x}, 0.3)",
                f"dy.noise({x}, 0.1)",
                f"dy.dropout_batch({x}, 0.5)",
                f"dy.block_dropout({x}, 0.3)",
            ]
        )
    )


MOTIFS = (affine, affine, attention, batches, builder, builder, cell, chain, chain, loss, loss, noise, shapes, table, table, tree, twice,
          words)  # fmt: skip


def expressions(g: Generator, count: int) -> None:
    """Some motifs and ops."""
    for _ in range(count):
        if g.chance(0.35):
            g.maybe(g.op)
        else:
            motif = g.one(MOTIFS)
            g.maybe(lambda motif=motif: motif(g))
