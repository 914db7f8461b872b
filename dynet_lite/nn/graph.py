"""Networks over graphs: messages from the neighbours of each node, added up. Uses public operations only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import dynet_lite as dy
from dynet_lite.needs import many, part

__all__ = ["Edge", "GraphConvolution"]

Edge = tuple[int, int, int]  # the node that speaks, the one that hears, the kind of the edge


@part(nodes=many("a node", lambda self: self.W.shape[1]))
class GraphConvolution:
    """One layer of a graph convolutional network: each node combines its own vector with messages along edges of several
    kinds.

        h'_v = rectify(W h_v + b + sum over edges (u, v, k) of g_uk (W_k h_u + b_k)),    g_uk = logistic(w_k h_u + c_k)

    With gates g, a node can send little where its message is not useful. Marcheggiani and Titov: Encoding sentences
    with graph convolutional networks for semantic role labeling (2017). Without gates, with weights for relations:
    Schlichtkrull and others: Modeling relational data with graph convolutional networks (2018).

    Written for one graph. The graphs of a mini-batch run together, whatever their shapes.
    """

    def __init__(self, model: dy.ParameterCollection, dim: int, out: int, kinds: int, gates: bool = True) -> None:
        """dim, out: numbers of a node before and after; kinds: how many kinds of edges there are."""
        if kinds < 0:
            raise ValueError(f"[GraphConvolution] kinds must be 0 or more; got {kinds}")
        if kinds > 100_000:  # each has weights of its own
            raise ValueError(f"[GraphConvolution] kinds must be 100000 or less; got {kinds}")
        here = model.add_subcollection("graph")
        self.W, self.b = here.add_parameters((out, dim), name="W"), here.add_parameters(out, init=0, name="b")
        self.out = out
        self.said = [_affine(here, out, dim, f"said{k}") for k in range(kinds)]
        self.gates = [_affine(here, 1, dim, f"gate{k}") for k in range(kinds)] if gates else []

    def __call__(self, nodes: Sequence[Any], edges: Iterable[Edge]) -> list[Any]:
        """A vector {out} for each node, from vectors {dim}. IndexError for an edge of a node or a kind that there is not."""
        edges = list(edges)
        for u, v, kind in edges:
            if not (0 <= u < len(nodes) and 0 <= v < len(nodes) and 0 <= kind < len(self.said)):
                raise IndexError(
                    f"[GraphConvolution] edge {(u, v, kind)}: there are {len(nodes)} nodes and {len(self.said)} kinds"
                )
        own = [dy.affine_transform([self.b, self.W, h]) for h in nodes]
        if not edges:
            return [dy.rectify(x) for x in own]
        messages = {(u, kind): self.message(nodes[u], kind) for u, _, kind in edges}  # one for all who hear it
        heard = dy.segment_sum([messages[u, kind] for u, _, kind in edges], [v for _, v, _ in edges], len(nodes))
        return [dy.rectify(x + y) for x, y in zip(own, heard, strict=True)]

    def symbolic(self, nodes: Any, sources: Any, targets: Any, kinds: Any) -> Any:
        """__call__ for a graph that is not known yet, in exported networks: a sequence of nodes, and inputs with u, v
        and k of each edge.
        """
        from dynet_lite import onnx

        own = nodes.map(lambda h: dy.affine_transform([self.b, self.W, h]))
        messages = [nodes.map(lambda h, kind=kind: self.message(h, kind)) for kind in range(len(self.said))]
        return own.map(lambda x, y: dy.rectify(x + y), onnx.heard(messages, sources, targets, kinds))

    def message(self, h: Any, kind: int) -> Any:
        """The message of a node along its edges of one kind: {out}."""
        b, W = self.said[kind]
        said = dy.affine_transform([b, W, h])
        if not self.gates:
            return said
        c, w = self.gates[kind]
        return dy.cmult(said, dy.logistic(dy.affine_transform([c, w, h])))


def _affine(model: Any, out: int, dim: int, name: str) -> tuple[Any, Any]:
    """b and W of W h + b."""
    return model.add_parameters(out, init=0, name=f"{name}_b"), model.add_parameters((out, dim), name=f"{name}_W")
