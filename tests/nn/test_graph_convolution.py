"""Graph convolutions against their formula, batched and not."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import GraphConvolution

EDGES = [(0, 1, 0), (2, 1, 0), (1, 0, 1), (1, 2, 1), (0, 1, 1), (2, 2, 0)]


def formula(layer: GraphConvolution, nodes: np.ndarray, edges: list[tuple[int, int, int]]) -> np.ndarray:
    W, b = layer.W.as_array(), layer.b.as_array()
    out = [W @ h + b for h in nodes]
    for u, v, kind in edges:
        said = layer.said[kind][1].as_array() @ nodes[u] + layer.said[kind][0].as_array()
        if layer.gates:
            c, w = (p.as_array() for p in layer.gates[kind])
            said = said / (1 + np.exp(-(w @ nodes[u] + c)))
        out[v] = out[v] + said
    return np.maximum(0, np.array(out))


@pytest.mark.parametrize("gates", [True, False])
@pytest.mark.parametrize("edges", [EDGES, EDGES[:1], []])
def test_the_formula(gates, edges):
    layer = GraphConvolution(dy.ParameterCollection(), 3, 4, 2, gates)
    for b, _ in [*layer.said, *layer.gates]:
        b.set_value(np.arange(b.shape[0]) / 7 - 0.1)
    nodes = np.random.default_rng(1).normal(size=(3, 3))
    dy.renew_cg()
    found = layer([dy.inputTensor(h) for h in nodes], edges)
    np.testing.assert_allclose([x.npvalue() for x in found], formula(layer, nodes, edges), rtol=1e-5, atol=1e-6)


def test_graphs_of_many_shapes_together():
    """Values and gradients of a mini-batch are the sums of those of its graphs alone, with batching and without."""
    rng = np.random.default_rng(2)
    model = dy.ParameterCollection()
    layers = [GraphConvolution(model, 3, 3, 2), GraphConvolution(model, 3, 2, 2)]
    graphs = []
    for n in (1, 2, 5, 5, 3):
        edges = [tuple(int(x) for x in (rng.integers(n), rng.integers(n), rng.integers(2))) for _ in range(2 * n)]
        graphs.append((rng.normal(size=(n, 3)), edges))

    def run(some, autobatch):
        dy.renew_cg(autobatching=autobatch)
        losses = []
        for vectors, edges in some:
            nodes = [dy.inputTensor(h) for h in vectors]
            for layer in layers:
                nodes = layer(nodes, edges)
            losses.append(dy.sum_elems(dy.square(dy.esum(nodes))))
        total = dy.esum(losses)
        value = total.value()
        total.backward()
        gradients = [p.grad_as_array().copy() for p in model.parameters_list()]
        model.reset_gradient()
        return [value, *gradients]

    alone = [sum(part) for part in zip(*[run([graph], True) for graph in graphs], strict=True)]
    assert any(abs(gradient).max() > 0.1 for gradient in alone[1:])
    for autobatch in (True, False):
        for found, wanted in zip(run(graphs, autobatch), alone, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_edges_of_nodes_that_are_not_there():
    layer = GraphConvolution(dy.ParameterCollection(), 3, 4, 2)
    for edge in ((0, 2, 0), (-1, 0, 0), (0, 1, 2)):
        with pytest.raises(IndexError, match="there are 2 nodes and 2 kinds"):
            layer([dy.zeros(3)] * 2, [edge])
