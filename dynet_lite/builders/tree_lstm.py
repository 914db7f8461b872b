"""Tree LSTMs: builders whose states are nodes of a tree.

NaryTreeLSTMBuilder and ChildSumTreeLSTMBuilder have cells of their own (Tai, Socher, Manning 2015);
UnidirectionalTreeLSTMBuilder and BidirectionalTreeLSTMBuilder run an LSTM over a node's input and its children.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, ClassVar, SupportsIndex

from dynet_lite import _core, config
from dynet_lite._core import Expression, Parameters, TreeNode
from dynet_lite.builders.base import LAYERS, positive
from dynet_lite.builders.part import Part, add_weight, folder
from dynet_lite.builders.vanilla_lstm import VanillaLSTMBuilder
from dynet_lite.needs import Told, many, number, rows

NODES = 10_000_000  # of a numbered tree, at most: a list of more would take all memory


class _OfGraph(threading.local):
    """What a builder keeps of the current graph of each thread."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.stacks: dict[bool, Any] = {}


class _NumberedTree(Part):
    """DyNet's way to build trees: set_num_elements(n), then add_input(id, children, x), children first."""

    of_graph: ClassVar[tuple[str, ...]] = ("_here",)

    def _forget_graph(self) -> None:
        self._here = _OfGraph()

    def set_num_elements(self, n: int) -> None:
        """Begin a tree of n nodes, numbered from 0."""
        self._here.nodes = [None] * positive(n, "the number of nodes", most=NODES)

    def _place(self, number: Any) -> int:
        if not isinstance(number, SupportsIndex):
            raise TypeError(f"[add_input] the number of a node must be a whole number; got {number!r}")
        place, n = number.__index__(), len(self._here.nodes)
        if not 0 <= place < n:
            raise IndexError(f"[add_input] node {place} of a tree of {n} nodes (see set_num_elements())")
        return place

    def _child(self, number: Any) -> Any:
        if (node := self._here.nodes[self._place(number)]) is None:
            raise ValueError(f"[add_input] node {number} has not been added yet; children come before their parent")
        return node

    def _put(self, number: Any, node: Any) -> None:
        self._here.nodes[self._place(number)] = node


def _an_input(builder: Any, x: Any) -> Told | None:
    return None if x is None else rows("an input", "input_dim")(builder, x)


def _tree_nodes(builder: Any, children: Any) -> Told | None:
    """children are nodes, and not too many."""
    if isinstance(children, (Expression, TreeNode, str)) or not isinstance(children, Iterable):
        return TypeError, f"children are a list of what node() gave; got {type(children).__name__}"
    given = list(children)
    if wrong := [child for child in given if not isinstance(child, (TreeNode, type(None)))]:
        return TypeError, f"children are what node() gave; got {type(wrong[0]).__name__}"
    most = getattr(builder, "N", len(given))
    return (ValueError, f"a node has at most {most} children (N); got {len(given)}") if len(given) > most else None


class _CellTreeBuilder(_NumberedTree):
    """Base of the builders with tree LSTM cells.

    Two ways to use one: ``builder.node(x, children)`` gives a TreeNode, with children TreeNodes (None for an absent one);
    or DyNet's numbers, see add_input(). x may be None where a node has no input of its own.
    """

    n_ary: ClassVar[bool]
    needs: ClassVar = {"x": _an_input, "node__children": _tree_nodes}

    def __init__(
        self, layers: int, input_dim: int, hidden_dim: int, model: Any, forget_bias: float, name: str | None
    ) -> None:
        self.layers = positive(layers, "layers", most=LAYERS)
        self.input_dim = positive(input_dim, "input_dim")
        self.hidden_dim = positive(hidden_dim, "hidden_dim")
        self.forget_bias = number(forget_bias, "forget_bias")
        self._begin_collection(model, name)
        self._parameters = [self._add_layer(i) for i in range(self.layers)]
        self._forget_graph()

    def _recurrent_shapes(self) -> dict[str, tuple[int, int]]:
        """Name and shape of the matrices that the children's h's are multiplied by."""
        raise NotImplementedError

    def _add_layer(self, i: int) -> list[Parameters]:
        n, m = self.hidden_dim, self.hidden_dim if i else self.input_dim
        own = {"W": (3 * n, m), "b": (3 * n,), "Wf": (n, m), "bf": (n,)}
        collection = folder(self._collection, f"layer{i}")
        return [
            add_weight(collection, name, shape, 0 if len(shape) == 1 else None)
            for name, shape in {**own, **self._recurrent_shapes()}.items()
        ]

    def _new_stack(self, update: bool) -> Any:
        layers = []
        for layer in self._parameters:
            wx, b, wf, bf, *u = layer if update else [_core.nobackprop(p) for p in layer]
            layers.append((b, wx, bf, wf, u))
        stack = self._here.stacks[update] = _core.TreeStack(self.n_ary, layers, self.hidden_dim, self.forget_bias)
        return stack

    def node(self, x: Any = None, children: Iterable[TreeNode | None] = (), update: bool = True) -> TreeNode:
        """A node with input x {input_dim} (None: no input) and children. update=False: no gradient to the parameters."""
        update = bool(update)
        stack = self._here.stacks.get(update)
        if stack is None or not stack.alive():
            stack = self._new_stack(update)
        return stack.node(x, children)  # type: ignore[no-any-return]

    def add_input(self, id: int, children: SequenceOf[int], x: Any = None) -> Expression:
        """Node number id of the tree begun by set_num_elements(): its h, {hidden_dim}. Children are numbers."""
        node = self.node(x, [self._child(c) for c in children])
        self._put(id, node)
        return node.output()

    def get_parameters(self) -> list[list[Parameters]]:
        """The parameters, a list per layer."""
        return [list(layer) for layer in self._parameters]


class NaryTreeLSTMBuilder(_CellTreeBuilder):
    """Tree LSTM for trees whose nodes have at most N children in order, such as binarised parses (N = 2).

    ``NaryTreeLSTMBuilder(N, layers, input_dim, hidden_dim, model, forget_bias=0.0)``. Parameters per layer: W {3 hidden,
    input} and b {3 hidden} (blocks i, o, g), Wf {hidden,input} and bf {hidden}, then for each child (U0, U1, ...) U {(3+N)
    hidden,hidden}: its part in i, o, g and in the forget gate of each child. DyNet's C++ builder of this name adds peepholes
    and keeps U in lookup tables, so files are not exchanged with it.
    """

    collection_name = "nary-tree-lstm-builder"
    n_ary = True

    def __init__(
        self, N: int, layers: int, input_dim: int, hidden_dim: int, model: Any, forget_bias: float = 0.0, *,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self.N = positive(N, "N", most=LAYERS)  # each child has weights of its own
        super().__init__(layers, input_dim, hidden_dim, model, forget_bias, name)

    def _recurrent_shapes(self) -> dict[str, tuple[int, int]]:
        return {f"U{k}": ((3 + self.N) * self.hidden_dim, self.hidden_dim) for k in range(self.N)}

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return (self.N, self.layers, self.input_dim, self.hidden_dim, self.forget_bias)

    @classmethod
    def from_spec(cls, spec: SequenceOf[Any], model: Any) -> NaryTreeLSTMBuilder:
        """A builder from its spec."""
        return cls(*[*spec[:4], model, *spec[4:]])


class ChildSumTreeLSTMBuilder(_CellTreeBuilder):
    """Tree LSTM for any number of children without order, such as dependency trees.

    ``ChildSumTreeLSTMBuilder(layers, input_dim, hidden_dim, model, forget_bias=0.0)``. Parameters per layer: W {3 hidden,
    input} and b {3 hidden} (blocks i, o, g), Wf {hidden,input} and bf {hidden}, U {3 hidden,hidden} on the sum of the
    children's h, Uf {hidden,hidden} on each.
    """

    collection_name = "child-sum-tree-lstm-builder"
    n_ary = False

    def __init__(
        self,
        layers: int,
        input_dim: int,
        hidden_dim: int,
        model: Any,
        forget_bias: float = 0.0,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(layers, input_dim, hidden_dim, model, forget_bias, name)

    def _recurrent_shapes(self) -> dict[str, tuple[int, int]]:
        return {"U": (3 * self.hidden_dim, self.hidden_dim), "Uf": (self.hidden_dim, self.hidden_dim)}

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return (self.layers, self.input_dim, self.hidden_dim, self.forget_bias)

    @classmethod
    def from_spec(cls, spec: SequenceOf[Any], model: Any) -> ChildSumTreeLSTMBuilder:
        """A builder from its spec."""
        return cls(*[*spec[:3], model, *spec[3:]])


def _input_dim(builder: Any) -> int:
    return int(builder._builders[0].input_dim)


class UnidirectionalTreeLSTMBuilder(_NumberedTree):
    """An LSTM that reads a node's input and then the outputs of its children; its last h is the node's output.

    ``UnidirectionalTreeLSTMBuilder(layers, input_dim, hidden_dim, model)``; inputs have the size of outputs, so input_dim
    must equal hidden_dim.
    """

    collection_name = "unidirectional-tree-lstm-builder"
    directions = 1
    needs: ClassVar = {"x": rows("an input", _input_dim), "node__children": many("a child", _input_dim)}

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any, *, name: str | None = None) -> None:
        hidden = positive(hidden_dim, "hidden_dim")
        if positive(input_dim, "input_dim") != hidden:
            raise ValueError(f"[{self.whoami()}] input_dim must equal hidden_dim; got {input_dim} and {hidden_dim}")
        if hidden % self.directions:
            raise ValueError(f"[{self.whoami()}] hidden_dim must be even; got {hidden}")
        self.spec = (layers, input_dim, hidden_dim)
        self._begin_collection(model, name)
        named = self.directions == 2 and not config.is_dynet()
        self._builders = [
            VanillaLSTMBuilder(
                layers, hidden, hidden // self.directions, self._collection, name=direction if named else None
            )
            for direction in ("forward", "backward")[: self.directions]
        ]
        self._forget_graph()

    def node(self, x: Any, children: Iterable[Expression] = (), update: bool = True) -> Expression:
        """The output {hidden_dim} of a node with input x and children of these outputs."""
        (builder,) = self._builders
        return builder.initial_state(update=update).transduce([x, *children])[-1]

    def add_input(self, id: int, children: SequenceOf[int], x: Any) -> Expression:
        """Node number id of the tree begun by set_num_elements(): its output. Children are numbers."""
        out = self.node(x, [self._child(c) for c in children])
        self._put(id, out)
        return out

    def set_dropout(self, p: float) -> None:
        """set_dropout(p) of the LSTMs inside."""
        for builder in self._builders:
            builder.set_dropout(p)

    def disable_dropout(self) -> None:
        """disable_dropout() of the LSTMs inside."""
        for builder in self._builders:
            builder.disable_dropout()


class BidirectionalTreeLSTMBuilder(UnidirectionalTreeLSTMBuilder):
    """Two LSTMs that read a node's input and then its children, from the first to the last and from the last to the first.

    Arguments as UnidirectionalTreeLSTMBuilder; hidden_dim, which must be even, is shared between the two.
    """

    collection_name = "bidirectional-tree-lstm-builder"
    directions = 2

    def node(self, x: Any, children: Iterable[Expression] = (), update: bool = True) -> Expression:
        forward, backward = self._builders
        children = list(children)
        ahead = forward.initial_state(update=update).transduce([x, *children])[-1]
        back = backward.initial_state(update=update).transduce([x, *children[::-1]])[-1]
        return _core.concatenate([ahead, back])
