"""The conditional random field against sums over all labellings, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn.crf import LinearChainCRF, iob_pairs, viterbi
from dynet_lite.text import to_bioes, to_iob2

LABELS = 3


def make(seed: int = 1) -> tuple[dy.ParameterCollection, LinearChainCRF, np.ndarray]:
    rng = np.random.default_rng(seed)
    model = dy.ParameterCollection()
    crf = LinearChainCRF(model, LABELS)
    for p in (crf.transitions, crf.start, crf.end):
        p.set_value(rng.normal(size=p.shape()))
    return model, crf, rng.normal(size=(4, LABELS))


def score(crf: LinearChainCRF, emissions: np.ndarray, labels: tuple[int, ...]) -> float:
    pairs, start, end = crf.transitions.as_array(), crf.start.as_array(), crf.end.as_array()
    return (
        start[labels[0]] + end[labels[-1]] + sum(emissions[t, y] for t, y in enumerate(labels))
        + sum(pairs[b, a] for a, b in itertools.pairwise(labels))
    )  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 4])
def test_sum_and_score(n):
    _, crf, emissions = make()
    inputs = [dy.inputVector(e) for e in emissions[:n]]
    everything = [score(crf, emissions[:n], y) for y in itertools.product(range(LABELS), repeat=n)]
    assert crf.log_partition(inputs).value() == pytest.approx(np.logaddexp.reduce(everything), rel=1e-6)
    labels = (2, 0, 0, 1)[:n]
    assert crf.score(inputs, labels).value() == pytest.approx(score(crf, emissions[:n], labels), rel=1e-5)
    p = math.exp(-crf.loss(inputs, labels).value())
    assert p == pytest.approx(math.exp(score(crf, emissions[:n], labels)) / np.exp(everything).sum(), rel=1e-5)


def test_gradient_is_that_of_the_sum_written_out():
    """d log Z is the expected number of times that a label or a pair comes: counted over all labellings."""
    _, crf, emissions = make(2)
    inputs = [dy.inputVector(e) for e in emissions]
    labels = (0, 2, 2, 1)
    crf.loss(inputs, labels).backward(full=True)
    every = list(itertools.product(range(LABELS), repeat=4))
    weights = np.exp([score(crf, emissions, y) for y in every])
    weights /= weights.sum()
    pairs, start, end, single = np.zeros((LABELS, LABELS)), np.zeros(LABELS), np.zeros(LABELS), np.zeros((4, LABELS))
    for y, w in [*zip(every, weights, strict=True), (labels, -1.0)]:
        start[y[0]] += w
        end[y[-1]] += w
        for t, label in enumerate(y):
            single[t, label] += w
        for a, b in itertools.pairwise(y):
            pairs[b, a] += w
    for p, expected in ((crf.transitions, pairs), (crf.start, start), (crf.end, end)):
        np.testing.assert_allclose(p.grad_as_array(), expected, atol=2e-6)
    for x, expected in zip(inputs, single, strict=True):
        np.testing.assert_allclose(x.gradient(), expected, atol=2e-6)


def test_gradient_by_differences():
    model, crf, emissions = make(3)
    W = model.add_parameters((LABELS, LABELS))
    dy.renew_cg()
    loss = crf.loss([W * dy.inputVector(e) for e in emissions], (1, 1, 0, 2))
    assert dy.check_grad(model, loss)


def test_sentences_are_batched_and_keep_their_losses():
    _, crf, _ = make(4)
    rng = np.random.default_rng(5)
    lengths = [1, 7, 3, 5, 7, 2]
    data = [(rng.normal(size=(n, LABELS)), list(rng.integers(LABELS, size=n))) for n in lengths]

    def losses() -> list[dy.Expression]:
        return [crf.loss([dy.inputVector(e) for e in emissions], labels) for emissions, labels in data]

    dy.renew_cg()
    together = losses()
    total = dy.esum(together)
    total.value()
    batches = dy.stats()["batches"]
    values = [x.value() for x in together]
    with dy.configure(autobatch=False):
        dy.renew_cg()
        alone = [x.value() for x in losses()]
    np.testing.assert_allclose(values, alone, rtol=1e-6)
    assert batches < 60  # some per step of the longest sentence, not per step of each


@pytest.mark.parametrize("seed", range(4))
def test_best_is_the_best(seed):
    _, crf, emissions = make(seed)
    best = max(itertools.product(range(LABELS), repeat=4), key=lambda y: score(crf, emissions, y))
    assert crf.best([emissions, emissions[:1]])[0] == list(best)
    assert len(viterbi(emissions[:1], np.zeros((3, 3)), np.zeros(3), np.zeros(3))) == 1


def test_labels_that_cannot_follow():
    labels = ["O", "B-A", "I-A", "I-B"]
    allowed = iob_pairs(labels)
    assert allowed[2].tolist() == [False, True, True, False, False]  # I-A after B-A and I-A, not at the start
    assert allowed[3].tolist() == [False, False, False, True, False]
    assert allowed[0].all() and allowed[1].all()
    crf = LinearChainCRF(dy.ParameterCollection(), 4)
    emissions = np.array([[0, 0, 9, 0], [0, 1, 9, 0], [0, 0, 0, 9.0]])
    found = [labels[i] for i in crf.best([emissions], allowed)[0]]
    assert found[0] == "B-A" and found[1] == "I-A" and found[2] != "I-B"


def test_pairs_of_bioes_are_those_of_spans():
    """A labelling is allowed if, and only if, it is what to_bioes makes of some labelling."""
    labels = ["O", *(f"{prefix}-{kind}" for kind in "AB" for prefix in "BIES")]
    allowed = iob_pairs(labels)
    n = len(labels)
    for row in itertools.product(range(n), repeat=3):
        path = [n, *row, n]
        legal = all(allowed[to, before] for before, to in itertools.pairwise(path))
        names = [labels[i] for i in row]
        assert legal == (to_bioes(to_iob2(names)) == names)
