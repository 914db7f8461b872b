"""export: a function of named inputs is traced into a graph, and the graph is written node by node as an ONNX file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.files import replacing
from dynet_lite.needs import shown

from .sizes import explain, sized
from .symbolic import Children, Ids, Input, Pairs, Spec, Trace, declared, handle, node_of, table_name, tracing, weight
from .symbolic import Sequence as Steps
from .table import REFUSED, lowering
from .writer import Made, Unsupported, Value, Writer

OPSET = 20
IR_VERSION = 9

_NEEDED = 'needs the packages of the extra: pip install "dynet_lite[onnx]"'


def export(
    fn: Callable[..., Any],
    path: str | os.PathLike[str],
    inputs: Mapping[str, Spec],
    outputs: Sequence[str] = ("output",),
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Writes what a function computes to an ONNX file (opset 20, IR version 9). Returns the path.

    fn: called once, with an expression, a Sequence or ids for each input, by name. It returns an expression, a
        Sequence, or the `products` of two; or a tuple with one of these for each output
    metadata: strings that the file carries

    Tensors have their axes in reverse order, with the mini-batch or the steps first: {3,4} X 8 is [8, 4, 3]. Weights
    are stored once, under their names. The file is checked, shapes included, before it is written.

    Unsupported, with the op and the line of the program, if something has no form in ONNX. ImportError without the
    extra `onnx`. ValueError if fn asks for a value.
    """
    try:
        import onnx
    except ImportError:
        raise ImportError(f"[onnx] export {_NEEDED}") from None
    if not isinstance(inputs, Mapping):
        raise TypeError(f"[onnx] inputs: a dict, such as {{'x': onnx.Input((4,))}}, is needed; got {shown(inputs)}")
    for name, spec in inputs.items():
        if not isinstance(spec, (Input, Ids, Children)):
            raise TypeError(
                f"[onnx] input {name}: onnx.Input(...), onnx.Ids(...) or onnx.Children(...) is needed; got {spec!r}"
            )
    given = [name for own, spec in inputs.items() for name, _, _ in declared(own, spec)]
    if len(set(given)) < len(given) or "" in given:
        raise ValueError(f"[onnx] inputs: the file needs names that are not equal, and not empty; got {given}")
    outputs = _named(outputs, given)
    with tracing() as trace, _core.ComputationGraph() as graph:
        graph.renew(False, True)
        graph.for_file, graph.sized, graph.computed = True, partial(sized, trace), trace.special
        try:
            found = _traced(fn, inputs, trace)
            if _core.graph_plans(graph):
                raise ValueError("[onnx] the function asks for a value while it is traced; a file knows no values yet")
            results, writer = _results(found, outputs), Writer([*given, *outputs])
            values = Lowering(graph, trace, writer).values(results)
        finally:
            graph.sized = graph.computed = None  # they hold expressions: the graph would never go
    model = _model(onnx, writer, inputs, dict(zip(outputs, values, strict=True)), metadata or {})
    with replacing(os.fspath(path)) as file:
        onnx.save(model, file)
    return Path(path)


def _named(outputs: Iterable[str], inputs: Sequence[str]) -> list[str]:
    """The names of the outputs. ValueError unless each is another one, and none is that of an input."""
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    if not names or len({*names, *inputs}) < len(names) + len(set(inputs)):
        raise ValueError(f"[onnx] outputs: names are needed that are not equal, and not those of inputs; got {names}")
    return names


def _traced(fn: Callable[..., Any], inputs: Mapping[str, Any], trace: Trace) -> Any:
    """What the function makes of stand-ins for its inputs."""
    try:
        return fn(**{name: handle(name, spec) for name, spec in inputs.items()})
    except Exception as error:
        explain(error, trace.symbols)
        raise


def _results(found: Any, outputs: Sequence[str]) -> list[Expression]:
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(results) != len(outputs):
        raise ValueError(
            f"[onnx] {len(outputs)} outputs are named ({', '.join(outputs)}); the function gave {len(results)}"
        )
    for name, one in zip(outputs, results, strict=True):
        if not isinstance(one, (Expression, Steps, Pairs)):
            raise TypeError(f"[onnx] output {name}: an expression or a sequence is needed; got {type(one).__name__}")
    return [one if isinstance(one, Expression) else one.e for one in results]


class Lowering:
    """Writes the nodes of a traced graph that some results need."""

    def __init__(self, graph: Any, trace: Trace, writer: Writer) -> None:
        self.trace, self.w = trace, writer
        self.origins = graph.origins or {}
        self.graph = graph
        self.done: dict[int, Value] = {}
        writer.inside = self.inside

    def values(self, results: Sequence[Expression]) -> list[Value]:
        """The values of the results, after everything they need."""
        wanted = [_core.expression_node(e)[1] for e in results]
        self.program = _core.graph_program(self.graph)
        for of_map in self.trace.maps:
            self._alone(*of_map)
        for i in sorted(self._needed(wanted)):
            if i not in self.done:
                self._lower(i)
        return [self.done[i] for i in wanted]

    def _alone(self, stand_ins: list[int], results: list[int], symbol: str) -> None:
        """Unsupported if what map applies to each step combines steps: in the file, all are computed at once."""
        begin, size = min(stand_ins), self.program[stand_ins[0]][3][1]
        made, of_steps = self._needed(results, begin), set(stand_ins)
        for i in sorted(made - of_steps):
            used = self.trace.uses(self.program, i)
            if any(j in of_steps for j in used):
                of_steps.add(i)
                where, op = self.origins.get(i, "?"), self.program[i][1]
                shown = f"{op.lstrip('_')} ({where})" if self.program[i][0] == "op" else where
                inside = "inside of a function that map applies to each"
                if self.program[i][3][1] != size:
                    raise Unsupported(f"[onnx] {shown} combines the steps of {symbol} {inside}")
                if any(j not in of_steps and self.program[j][3][1] == size for j in used):
                    raise Unsupported(
                        f"[onnx] {shown} combines the steps of {symbol} with others of {symbol} {inside}; "
                        "steps that go with them are one more sequence: xs.map(f, ys)"
                    )

    def inside(self, given: Sequence[tuple[Expression, Value]], results: Sequence[Expression]) -> list[Value]:
        """The values of results inside a loop, where some expressions have other values."""
        outer, wanted = self.done, list(map(node_of, results))
        self.done = {**outer, **{node_of(e): value for e, value in given}}
        try:
            for i in sorted(self._needed(wanted)):
                if i not in self.done:
                    self._lower(i)
            return [self.done[i] for i in wanted]
        finally:
            self.done = outer

    def _needed(self, wanted: Sequence[int], begin: int = 0) -> set[int]:
        """The nodes from number `begin` on that these are computed from, with them."""
        seen: set[int] = set()
        todo = list(wanted)
        while todo:
            i = todo.pop()
            if i in seen or i < begin:
                continue
            seen.add(i)
            todo += self.trace.uses(self.program, i)
        return seen

    def _get(self, e: Expression) -> Value:
        return self.done[_core.expression_node(e)[1]]

    def _lower(self, i: int) -> None:
        sort, op, owner, (dims, batch), arguments, _, attributes, data = self.program[i]
        if i in self.trace.special:
            _, write, symbol, shown = self.trace.special[i]
            self.done[i] = Value(write(self.w, self._get), dims, batch, symbol, shown)
        elif sort == "op":
            self._op(i, Made(op, dims, batch, attributes), [self.done[a] for a in arguments])
        elif sort == "input":
            shape = [batch] * (batch != 1) + list(dims[::-1])
            self.done[i] = Value(self.w.constant(data.reshape(shape)), dims, batch)
        elif owner is None:
            raise ValueError(f"[onnx] a weight of the graph is gone: keep its collection ({sort} {dims})")
        elif sort == "parameter":
            self.done[i] = Value(weight(self.w, owner, lambda: owner.as_array().T), dims)
        elif sort == "table":
            self.done[i] = Value(table_name(self.w, owner), dims)
        else:
            ids = np.array(data if batch != 1 else data[0], dtype=np.int64)
            self.done[i] = Value(
                self.w.op("Gather", table_name(self.w, owner), self.w.constant(ids), axis=0), dims, batch
            )

    def _op(self, i: int, node: Made, arguments: list[Value]) -> None:
        where = self.origins.get(i, "?")
        write = lowering(node.op)
        shown = node.op.lstrip("_")
        if write is None:
            raise Unsupported(
                f"[onnx] {shown} ({where}) cannot be exported: {REFUSED.get(node.op, 'there is no row for it')}"
            )
        try:
            names = write(self.w, node, arguments)
        except Unsupported as error:
            raise Unsupported(f"{error} ({where})") from None
        symbols = {a.symbol: a.batch for a in arguments if a.batched}
        if len(symbols) > 1:  # the program asked for the size, which a length that is not known pretends to have
            sizes = " and ".join(symbol or str(batch) for symbol, batch in symbols.items())
            raise Unsupported(f"[onnx] {shown}: mini-batches of the sizes {sizes} do not go together ({where})")
        symbol = next((s for s, batch in symbols.items() if batch == node.batch), "") if node.batched else ""
        for k, name in enumerate(names if isinstance(names, tuple) else (names,)):
            dims, batch = self.program[i + k][3]
            self.done[i + k] = Value(name, dims, batch, symbol)


def _model(
    onnx: Any, w: Writer, inputs: Mapping[str, Spec], outputs: Mapping[str, Value], metadata: Mapping[str, str]
) -> Any:
    """The model, checked."""
    helper, float32, int64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    for name, value in outputs.items():
        w.nodes.append(helper.make_node("Identity", [value.name], [name], name=f"output_{name}"))
    graph = helper.make_graph(
        w.nodes,
        "dynet_lite",
        [
            helper.make_tensor_value_info(name, int64 if whole else float32, shape)
            for given, spec in inputs.items()
            for name, whole, shape in declared(given, spec)
        ],
        [helper.make_tensor_value_info(name, float32, value.shape) for name, value in outputs.items()],
        w.initializers,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dynet_lite")
    helper.set_model_props(model, {name: str(text) for name, text in metadata.items()})
    onnx.checker.check_model(model, full_check=True)
    return model


def export_recipe(recipe: Any, path: str | os.PathLike[str]) -> list[Path]:
    """Writes the networks of a recipe's model: the first to `path`, others with their names in the endings.

    x.onnx is followed by x.step.onnx, for instance. The metadata of each file holds the recipe's name, settings and
    parts (vocabularies) as JSON.
    """
    from dynet_lite.harness.state import about

    metadata = {key: value if isinstance(value, str) else json.dumps(value) for key, value in about(recipe).items()}
    recipe.training = False
    written: list[Path] = []
    for name, (fn, inputs, outputs) in recipe.networks().items():
        to = Path(path) if not written else Path(path).with_suffix(f".{name}.onnx")
        written.append(export(fn, to, inputs, outputs, metadata))
    return written
