"""The computation graph as functions: renewal, evaluation of lists, marks, pictures and counters.

Each thread has a current graph; expressions are added to it. The class itself is compiled (_core.ComputationGraph).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np

from dynet_lite import _core, gpus, kept
from dynet_lite._core import ComputationGraph, Expression, cg

__all__ = [
    "DeviceInfo",
    "available_devices",
    "cg_checkpoint",
    "cg_revert",
    "cg_version",
    "dump_cg",
    "forward",
    "get_device_info",
    "graph",
    "heap_calls",
    "npvalues",
    "plan_text",
    "print_graphviz",
    "print_text_graphviz",
    "renew_cg",
    "stats",
    "to_device",
    "values",
]

Array = np.ndarray[Any, np.dtype[np.float64]]


def renew_cg(
    immediate_compute: bool = False, check_validity: bool = False, autobatching: bool | None = None
) -> ComputationGraph:
    """Empty the current graph and give it back; expressions made before are stale from now on.

    immediate_compute  compute each node when it is made
    check_validity     NaN in a value, or infinity, raises NotFiniteError, which names the line that made the node. Infinities
                       from an input (a mask), or from what log_softmax leaves out, are allowed
    autobatching       overrides the setting for this graph
    """
    return _core.renewed(immediate_compute, check_validity, autobatching)


def graph(
    immediate_compute: bool = False, check_validity: bool = False, autobatching: bool | None = None
) -> ComputationGraph:
    """A new graph for a block: ``with dy.graph() as g: ...``. Afterwards the previous graph is current again.

    Parameters as in renew_cg().
    """
    return ComputationGraph().renew(immediate_compute, check_validity, autobatching)


def cg_version() -> int:
    """The stamp of the current graph's nodes; every renewal changes it."""
    return cg().version()


def cg_checkpoint() -> None:
    """Mark this point of the current graph; marks nest. What has not run yet runs first, with the weights of now."""
    cg().checkpoint()


def cg_revert() -> None:
    """Drop every node made since the last mark; their expressions become stale. Does nothing without a mark."""
    kept.revert()


def _list(es: Iterable[Expression], what: str) -> list[Expression]:
    if isinstance(es, Expression):
        raise TypeError(f"[{what}] takes a list of expressions; got one expression")
    out = list(es)
    for e in out:
        if not isinstance(e, Expression):
            raise TypeError(f"[{what}] takes a list of expressions; got a {type(e).__name__} in it")
    return out


def forward(exps: Iterable[Expression], recalculate: bool = False) -> None:
    """Compute all these expressions together (and whatever else is pending in their graph)."""
    for k, e in enumerate(_list(exps, "forward")):
        e.forward(recalculate and k == 0)


def values(exps: Iterable[Expression], recalculate: bool = False) -> list[Any]:
    """value() of each; they are computed together, as by forward()."""
    return [e.value(recalculate and not k) for k, e in enumerate(_list(exps, "values"))]


def npvalues(exps: Iterable[Expression], recalculate: bool = False) -> list[Array]:
    """npvalue() of each; they are computed together, as by forward()."""
    return [e.npvalue(recalculate and not k) for k, e in enumerate(_list(exps, "npvalues"))]


# ---- pictures and reports ------------------------------------------------------------------------------------------


def text_graphviz(g: ComputationGraph | None = None) -> str:
    """The graph in the language of graphviz. Nodes that run inside another, or that another computes, are not drawn."""
    lines = ["digraph G {", "  rankdir=LR;", "  nodesep=.05;"]
    g = g or cg()
    nodes = _core.graph_nodes(g)
    for number, what, _, arguments in g.nodes():
        if nodes[number][0] in ("fused", "merged"):
            continue
        arguments = [nodes[a][5] if nodes[a][0] == "merged" else a for a in arguments]
        text = what.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  N{number} [label="v{number} = {text}"];')
        lines += [f"  N{a} -> N{number};" for a in arguments]
    return "\n".join([*lines, "}"])


def print_text_graphviz() -> None:
    """Write the current graph in the language of graphviz on stderr."""
    print(text_graphviz(), file=sys.stderr)


def print_graphviz(
    compact: bool = False,
    show_dims: bool = True,
    expression_names: Any = None,
    lookup_names: Any = None,
    collapse_birnns: bool = False,
) -> None:
    """Write the current graph in the language of graphviz on stdout. The options are accepted for DyNet's sake."""
    print(text_graphviz())


def dump_cg(
    filename: str = "", show_values: bool = True, show_gradients: bool = True, nan_check_only: bool = False
) -> None:
    """Write every node with its value and gradient, to a file or on stderr; for finding NaN.

    What has not run yet runs now, and each node of it has a value; what ran inside another node before has none.
    nan_check_only: only nodes whose value or gradient has NaN or infinity.
    """
    if filename:
        with open(os.fsdecode(filename), "w", encoding="utf-8") as f:
            _dump(f, show_values, show_gradients, nan_check_only)
    else:
        _dump(sys.stderr, show_values, show_gradients, nan_check_only)


def _dump(out: TextIO, show_values: bool, show_gradients: bool, nan_check_only: bool) -> None:
    g = cg()
    nodes = [
        (g.kept_expression(number), what, arguments) for number, what, _, arguments in g.nodes()
    ]  # before they run
    sorts, producers = zip(*[(node[0], node[5]) for node in _core.graph_nodes(g)], strict=True) if nodes else ((), ())
    for number, (node, what, arguments) in enumerate(nodes):
        parts = []
        if show_values and node is not None:
            parts.append(("value", node.npvalue()))
        if show_gradients and node is not None:
            try:
                parts.append(("gradient", node.gradient()))
            except RuntimeError:
                pass  # no backward() yet
        if nan_check_only and all(np.isfinite(array).all() for _, array in parts):
            continue
        print(f"v{number} = {what} of {[f'v{a}' for a in arguments]}", file=out)
        if node is None:
            dead = "dead" in (sorts[number], sorts[producers[number]])
            where = "nowhere: it did not run" if dead else "inside another node only, which has run; not kept"
            print(f"  needed {where}", file=out)
        for name, array in parts:
            print(f"  {name} " + np.array2string(array, precision=5, threshold=64, prefix="  " + name + " "), file=out)


def stats() -> dict[str, Any]:
    """Counters of the current graph since its renewal, and of the process.

    nodes                     that ran; what runs inside another node is not counted
    nodes_merged, nodes_dead  nodes that did not run: equal to another one; needed by nothing
    batches, lower_bound      how many batches ran, and the fewest possible
    mean_batch_size           nodes per batch
    plans, plans_again        forward passes that were planned, and those that used an earlier plan
    backward_plans, backward_plans_again      the same of backward passes
    plan_steps                comparisons that the planner made
    plan_time, forward_time, backward_time    seconds
    floats_gathered, floats_scattered         numbers copied for a matrix library
    rows_repeated             rows of products that were not multiplied again, such as the same word twice
    matrices_transposed       weights transposed for backward passes, each once a pass; joined ones count as one
    graph_nodes, value_bytes, gradient_bytes  size of the graph
    ops                       time by op, while profiling is on

    Since the process began:

    heap_calls                of the engine
    compiled_calls, compiled_recorded, compiled_dropped    of compiled functions
    passes_on_threads, passes_on_one_thread   forward passes that might use several threads, by whether they did: on a busy
                              machine several may gain nothing
    device                    what a GPU was asked for: launches, waits, uploads, on_host and more (docs/gpu.md); {} on the CPU
    """
    g = cg()
    several, one = _core.passes_by_threads()
    process = {"heap_calls": _core.heap_calls(), "passes_on_threads": several, "passes_on_one_thread": one}
    device = {} if _core.settings.backend == "cpu" else _core.backend_counts()
    return {**g.stats(), **_core.compiled_stats(), **process, "ops": g.op_profile(), "device": device}


def plan_text(after: str | None = None, backward: bool = False) -> str:
    """The plans that the current graph has run since its renewal, one line per batch.

    after: show the graph instead, as it is after this pass (see explain_rewrites()), or as it was built ("made"): one line per
    node with its number, its op and its arguments. This runs what is pending. ValueError if there is no such pass, if it is
    off, or if nothing is pending.
    backward: show how the last backward pass was run instead, one line per step; "Backward" in docs/engine/memory.md says how to
    read it. Empty if there was none.
    """
    if backward:
        return cg().backward_text()
    if after is None:
        return cg().plan_text()
    texts = dict(cg().rewrites())
    if after not in texts:
        names = ["made", *(name for name, _, _ in _core.passes())]
        known = after in names and not texts
        what = (
            "nothing is pending: ask before a value is read"
            if known
            else f"no pass that ran; there are {', '.join(texts) or ', '.join(names)}"
        )
        raise ValueError(f"[plan_text] after={after!r}: {what}")
    return texts[after]


def heap_calls() -> int:
    """Heap calls of the engine's containers since the process began."""
    return _core.heap_calls()


# ---- devices -------------------------------------------------------------------------------------------------------


class DeviceInfo:
    """Name, number and type of a device."""

    def __init__(self, name: str, id: int, dtype: str) -> None:
        self.name, self.id, self.type = name, id, dtype

    def __repr__(self) -> str:
        return f"DeviceInfo(name={self.name!r}, id={self.id}, type={self.type!r})"


def available_devices() -> list[str]:
    """Names of the devices that can be used: "CPU", then "GPU:0", ... for GPUs. dy.devices() says more."""
    numbers = [d.name.partition(":")[2] for d in gpus.devices()[1:] if d.usable]
    return ["CPU", *(f"GPU:{number}" for number in numbers)]


def get_device_info(name: str) -> DeviceInfo:
    """What is known of a device. ValueError (a DeviceError too) when there is none of this name."""
    if name in ("CPU", b"CPU", ""):
        return DeviceInfo("CPU", 0, "CPU")
    known = available_devices()
    if name not in known:
        only = "the only device is CPU" if len(known) == 1 else f"there are {', '.join(known)}"
        raise gpus.UnknownDevice(f"[get_device_info] {only}; got {name!r}")
    return DeviceInfo(name, int(name.partition(":")[2]), "GPU")


def to_device(e: Expression, device_str: str) -> Expression:
    """The same expression: all of a graph is computed on the device of the settings."""
    get_device_info(device_str)
    return e
