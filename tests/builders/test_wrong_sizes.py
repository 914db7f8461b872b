"""What a part of a model is given in a wrong size is an error in the words of that part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import nn


def vectors(*sizes: int) -> list[Any]:
    return [dy.inputVector(np.ones(n)) for n in sizes]


def matrix(rows: int) -> Any:
    return dy.inputTensor(np.ones((rows, 5)))


def attention(kind: Any, key: int, query: int) -> Any:
    return kind(dy.inputVector(np.ones(query)), kind.remember(vectors(key)))


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "LSTM": (lambda m: dy.LSTMBuilder(2, 3, 4, m).initial_state().add_input(*vectors(4)), r"an input of shape \{3\} .* got \{4\}"),
    "BiRNNBuilder": (lambda m: dy.BiRNNBuilder(2, 3, 4, m, dy.GRUBuilder).transduce(vectors(3, 4)), r"3 rows .* \{4\} \(number 1 of 2\)"),
    "BiRNNBuilder states": (lambda m: dy.BiRNNBuilder(1, 3, 4, m, dy.GRUBuilder).add_inputs(vectors(4)), r"3 rows .* \{4\}"),
    "UnidirectionalTreeLSTMBuilder": (lambda m: dy.UnidirectionalTreeLSTMBuilder(1, 3, 3, m).node(*vectors(4)), r"an input of 3 rows .* \{4\}"),
    "UnidirectionalTreeLSTMBuilder child": (
        lambda m: dy.UnidirectionalTreeLSTMBuilder(1, 3, 3, m).node(*vectors(3), vectors(4)), r"a child of 3 rows .* \{4\}"),
    "BidirectionalTreeLSTMBuilder": (lambda m: dy.BidirectionalTreeLSTMBuilder(1, 4, 4, m).node(*vectors(3)), r"an input of 4 rows .* \{3\}"),
    "ChildSumTreeLSTMBuilder": (lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m).node(*vectors(4)), r"an input of 3 rows .* \{4\}"),
    "NaryTreeLSTMBuilder": (lambda m: dy.NaryTreeLSTMBuilder(2, 1, 3, 4, m).node(*vectors(4)), r"an input of 3 rows .* \{4\}"),
    "DotAttention": (lambda m: attention(nn.DotAttention(3, 3, m), 4, 3), r"a memory of 3 rows .* \{4,1\}"),
    "DotAttention query": (lambda m: attention(nn.DotAttention(3, 3, m), 3, 4), r"a query of 3 rows .* \{4\}"),
    "MLPAttention": (lambda m: attention(nn.MLPAttention(3, 2, 5, m), 3, 3), r"a memory of 2 rows .* \{3,1\}"),
    "MLPAttention query": (lambda m: attention(nn.MLPAttention(3, 2, 5, m), 2, 2), r"a query of 3 rows .* \{2\}"),
    "MultiHeadAttention": (lambda m: nn.MultiHeadAttention(4, 2, m)(matrix(3)), r"queries of 4 rows .* \{3,5\}"),
    "MultiHeadAttention memory": (lambda m: nn.MultiHeadAttention(4, 2, m)(matrix(4), matrix(3)), r"a memory of 4 rows .* \{3,5\}"),
    "LayerNorm": (lambda m: nn.LayerNorm(3, m)(*vectors(4)), r"3 rows .* \{4\}"),
    "Biaffine": (lambda m: nn.Biaffine(m, 3, 4).all_pairs(matrix(4), matrix(4)), r"heads of 3 rows .* \{4,5\}"),
    "Biaffine pairs": (lambda m: nn.Biaffine(m, 3, 4, 2).pairs(matrix(3), matrix(3)), r"dependents of 4 rows .* \{3,5\}"),
    "GraphConvolution": (lambda m: nn.GraphConvolution(m, 3, 4, 2)(vectors(3, 4), []), r"a node of 3 rows .* \{4\} \(number 1 of 2\)"),
    "LetterCNN": (lambda m: nn.LetterCNN(m, 3, 4)(vectors(4)), r"a letter of 3 rows .* \{4\}"),
    "LetterLSTM": (lambda m: nn.LetterLSTM(m, 3, 4)(vectors(4)), r"a letter of 3 rows .* \{4\}"),
    "LinearChainCRF": (lambda m: nn.LinearChainCRF(m, 3).loss(vectors(3, 4), [0, 1]), r"3 rows .* \{4\} \(number 1 of 2\)"),
    "LinearChainCRF length": (lambda m: nn.LinearChainCRF(m, 3).loss(vectors(3, 3), [0]), "a label for each word .* 1 for 2"),
    "NegativeSampling": (lambda m: nn.NegativeSampling(m, 3, [1, 2]).loss(*vectors(4), 1), r"a vector of 3 rows .* \{4\}"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_part_is_named(case: str) -> None:
    call, message = CASES[case]
    model = dy.ParameterCollection()
    dy.renew_cg()
    name = "VanillaLSTMBuilder" if case == "LSTM" else case.split()[0]
    with pytest.raises(ValueError, match=rf"^\[{name}\] .*{message}"):
        call(model)
    assert dy.sum_elems(*vectors(3)).value() == 3  # the graph goes on


def test_numbers_and_kinds() -> None:
    model = dy.ParameterCollection()
    dy.renew_cg()
    for call, message in (
        (lambda: nn.LinearChainCRF(model, 3).loss(vectors(3), [3]), r"\[LinearChainCRF\] label 3: there are 3"),
        (
            lambda: nn.NegativeSampling(model, 3, [1, 2]).loss(*vectors(3), -1),
            r"\[NegativeSampling\] word -1: there are 2",
        ),
    ):
        with pytest.raises(IndexError, match=message):
            call()  # type: ignore[no-untyped-call]
    with pytest.raises(
        TypeError, match=r"\[NaryTreeLSTMBuilder\] children are what node\(\) gave; got InputExpression"
    ):
        dy.NaryTreeLSTMBuilder(2, 1, 3, 4, model).node(*vectors(3), vectors(4))


def test_other_errors_stay_as_they_are() -> None:
    model = dy.ParameterCollection()
    builder = dy.ChildSumTreeLSTMBuilder(1, 3, 4, model)
    dy.renew_cg()
    old = vectors(3)
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        builder.node(*old)
    with pytest.raises(dy.StaleExpressionError):
        nn.GraphConvolution(model, 3, 4, 2)(old, [])
