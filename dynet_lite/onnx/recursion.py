"""Functions of one's own over trees that are not known before the file runs: a Loop over tables of states, a row a node.

Row 0 of the tables is nobody's. Who may import: this package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynet_lite._core import Expression

from .loops import Body, Several, Steps, stand_ins, steps_of
from .makeup import alike, flat, like, same_dims
from .symbolic import Children, Chosen, Get
from .symbolic import Sequence as Steps_
from .writer import Unsupported, Writer

# (the number of a node, the rows of its children, tables of states) -> its state
Turn = Callable[[str, str, list[str]], list[str]]


def recurse(f: Callable[..., Any], xs: Any, children: Any, absent: Any) -> Any:
    """The states of the nodes of trees or DAGs: f(x, *states of the children) for each node, in order.

    xs: the inputs of the nodes, a Sequence or a tuple of some
    children: an input of onnx.Children with a number; f gets this many states
    absent: the state that stands for a missing child

    Returns a Sequence, or sequences arranged like the state. ValueError if f returns a state arranged in another way
    than `absent`.
    """
    steps, spec = _given(xs, children)
    most = int(spec.most)
    (x, own), below = stand_ins(xs), [stand_ins(absent) for _ in range(most)]
    after = f(x, *[state for state, _ in below])
    if not alike(after, absent):
        raise ValueError("[onnx] recurse: the function gives a state that is made up like `absent`")
    body = Body([*own, *(e for _, leaves in below for e in leaves)], same_dims("recurse", absent, after))

    def write(w: Writer, get: Get) -> list[str]:
        inputs = [get(s.e).name for s in steps]
        nobody = [w.op("Unsqueeze", get(e).name, w.ints(0)) for e in flat(absent)]

        def turn(i: str, mine: str, tables: list[str]) -> list[str]:
            mine_of_inputs = [w.op("Gather", name, i, axis=0) for name in inputs]
            theirs = [w.op("Gather", t, mine, axis=0) for t in tables]
            states = [w.op("Squeeze", w.slice(t, 0, j, j + 1), w.ints(0)) for j in range(most) for t in theirs]
            return body.write(w, [*mine_of_inputs, *states])

        return _over_nodes(w, children.name, inputs[0], nobody, [len(e.shape) for e in flat(absent)], turn)

    return _made(Several([*flat(absent), *(s.e for s in steps), *body.outer], write), steps, absent)


def recursed(cell: Callable[..., Any], xs: Any, children: Any) -> Any:
    """dy.recurse: cell(x, *states of the children) for each node. Its children are the numbers before the first -1.

    For each number of children that may be, the cell is called once. States are made up alike and have the same dims,
    those of leaves, too. Where a node has another number of children when the file runs, its state is NaN.
    """
    steps, spec = _given(xs, children)
    counts = sorted(spec.counts or range(int(spec.most) + 1))
    x, own = stand_ins(xs)
    leaf = cell(x)
    shapes = [e.shape for e in flat(leaf)]
    bodies = {0: Body(own, flat(leaf))}
    for k in counts[1:]:
        bodies[k] = _of_children(cell, xs, leaf, k)

    def write(w: Writer, get: Get) -> list[str]:
        inputs, kinds = [get(s.e).name for s in steps], _counted(w, children.name, int(spec.most))
        nobody = [w.op("Expand", w.number(0), w.ints(1, *reversed(shape))) for shape in shapes]

        def turn(i: str, mine: str, tables: list[str]) -> list[str]:
            mine_of_inputs = [w.op("Gather", name, i, axis=0) for name in inputs]

            def of(k: int) -> Callable[[], list[str]]:
                def states() -> list[str]:
                    rows = [w.op("Gather", mine, w.scalar(j), axis=0) for j in range(k)]
                    return bodies[k].write(
                        w, [*mine_of_inputs, *(w.op("Gather", t, r, axis=0) for r in rows for t in tables)]
                    )

                return states

            def unknown() -> list[str]:
                return [w.op("Expand", w.number(float("nan")), w.ints(*reversed(shape))) for shape in shapes]

            return w.cases(w.op("Gather", kinds, i, axis=0), {k: of(k) for k in counts}, unknown, len(tables))

        return _over_nodes(w, children.name, inputs[0], nobody, [len(shape) for shape in shapes], turn)

    needs: list[Expression | int] = [*(s.e for s in steps), *(e for body in bodies.values() for e in body.outer)]
    return _made(Several(needs, write), steps, leaf)


def _of_children(cell: Callable[..., Any], xs: Any, leaf: Any, k: int) -> Body:
    """What a cell makes of k states like this one."""
    (x, own), below = stand_ins(xs), [stand_ins(leaf) for _ in range(k)]
    try:
        after = cell(x, *[state for state, _ in below])
    except (TypeError, AttributeError) as error:
        raise type(error)(
            f"[onnx] recurse: {getattr(cell, '__name__', 'the cell')} of {k} children: {error}; onnx.Children(..., counts=(0, 2)) says "
            "how many a node may have"
        ) from error
    if not alike(after, leaf):
        raise ValueError(f"[onnx] recurse: the states of leaves and of nodes with {k} children are not made up alike")
    return Body([*own, *(e for _, leaves in below for e in leaves)], same_dims("recurse", leaf, after))


def _given(xs: Any, children: Any) -> tuple[list[Steps], Children]:
    """The inputs of the nodes, and what is known of the children."""
    if not isinstance(children, Chosen) or not isinstance(children.spec, Children):
        raise TypeError(f"[onnx] recurse: an input declared as onnx.Children is needed; got {type(children).__name__}")
    steps, spec = steps_of("recurse", xs), children.spec
    if steps[0].symbol != spec.length or steps[0].backwards:
        raise ValueError(f"[onnx] recurse: the inputs have the length {steps[0].symbol}, the children {spec.length}")
    if not isinstance(spec.most, int):
        raise Unsupported(f"[onnx] recurse: needs a number of children, such as onnx.Children({spec.length!r}, 2)")
    return steps, spec


def _counted(w: Writer, children: str, most: int) -> str:
    """How many children each node has, [n]; -1 where one stands behind a -1."""
    there = w.op("Cast", w.op("GreaterOrEqual", children, w.scalar(0)), to=7)
    count = w.op("ReduceSum", there, w.ints(1), keepdims=0)
    last = w.op("ReduceMax", w.op("Mul", there, w.ints(*range(1, most + 1))), w.ints(1), keepdims=0)
    return w.op("Where", w.op("Equal", count, last), count, w.scalar(-1))


def _over_nodes(w: Writer, children: str, input: str, nobody: list[str], ranks: Sequence[int], turn: Turn) -> list[str]:
    """The states of all nodes [n, ...]. nobody: the first rows of the tables, [1, ...]; each stands in all rows at first."""
    rows, count = w.op("Add", children, w.scalar(1)), w.op("Shape", input, start=0, end=1)
    size = w.op("Add", count, w.scalar(1))
    empty = [
        w.op("Expand", first, w.op("Concat", size, w.ints(*[1] * rank), axis=0))
        for first, rank in zip(nobody, ranks, strict=True)
    ]

    def step(i: str, tables: list[str]) -> list[str]:
        new = turn(i, w.op("Gather", rows, i, axis=0), tables)
        at = w.op("Reshape", w.op("Add", i, w.scalar(1)), w.ints(1, 1))
        return [w.op("ScatterND", t, at, w.op("Unsqueeze", v, w.ints(0))) for t, v in zip(tables, new, strict=True)]

    found = w.loop(w.op("Squeeze", count), empty, step)
    return [w.op("Slice", t, w.ints(1), w.ints(2**31), w.ints(0)) for t in found]


def _made(whole: Several, steps: list[Steps], state: Any) -> Any:
    size, symbol = steps[0].e.batch_size, steps[0].symbol
    made = (Steps_(whole.place(e.shape, size, symbol, i), symbol) for i, e in enumerate(flat(state)))
    return like(state, made)
