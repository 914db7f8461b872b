"""What a part of a model is given in a wrong shape, kind or number is an error in its words, at the user's line."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wrong_use import CLUSTERS, PATHS, WORDS, needs_311, vec

import dynet_lite as dy
from dynet_lite import nn


def mat(n: int) -> Any:
    return dy.inputTensor(np.ones((n, 5)))


def stale(make: Callable[[int], Any], n: int) -> Any:
    old = make(n)
    dy.renew_cg()
    return old


def fails(call: Callable[[], Any]) -> Exception:
    """The error of a call, whose trace ends in this file."""
    try:
        call()
    except Exception as error:
        trace = error.__traceback__
        assert trace is not None
        while trace.tb_next is not None:
            trace = trace.tb_next
        assert trace.tb_frame.f_code.co_filename == __file__
        return error
    pytest.fail("no error")


@dy.cell
def step(state: Any, x: Any) -> Any:
    return dy.tanh(state + x)


CELLS = ("VanillaLSTMBuilder", "SimpleRNNBuilder", "GRUBuilder", "CoupledLSTMBuilder", "FastLSTMBuilder", "CompactVanillaLSTMBuilder",
         "SparseLSTMBuilder")  # fmt: skip

MAKE: dict[str, Callable[[Any], Any]] = {
    "child": lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m),
    "nary": lambda m: dy.NaryTreeLSTMBuilder(2, 1, 3, 4, m),
    "one": lambda m: dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, m),
    "two": lambda m: dy.BidirectionalTreeLSTMBuilder(1, 4, 4, m),
    "mlp": lambda m: nn.MLPAttention(3, 2, 5, m),
    "dot": lambda m: nn.DotAttention(3, 2, m),
    "heads": lambda m: nn.MultiHeadAttention(4, 2, m),
    "crf": lambda m: nn.LinearChainCRF(m, 3),
    "pairs": lambda m: nn.Biaffine(m, 3, 4, 2),
}
# A class, how one is made, a call of a method with one argument left open, what makes it right, of how many rows, and its noun.
Slot = tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any], Callable[[int], Any], int, str]


def recurrent(kind: str) -> list[Slot]:
    def make(m: Any) -> Any:
        return getattr(dy, kind)(1, 3, 4, m)

    return [
        (kind, make, lambda b, x: b.initial_state().add_input(x), vec, 3, "an input of shape {3}"),
        (kind, make, lambda b, x: b.initial_state().add_inputs([vec(3), x]), vec, 3, "an input of shape {3}"),
        (kind, make, lambda b, x: b.initial_state().transduce([vec(3), x]), vec, 3, "an input of shape {3}"),
        (kind, make, lambda b, x: b.initial_state([x] * (1 + b.has_cell)), vec, 4, "a state of shape {4}"),
        (kind, make, lambda b, x: b.initial_state().set_h([x]), vec, 4, "a state of shape {4}"),
        (kind, make, lambda b, x: b.initial_state().add_input(vec(3)).set_s([x]), vec, 4, "a state of shape {4}"),
    ]  # fmt: skip


def trees() -> list[Slot]:
    child, nary, one, two = (MAKE[k] for k in ("child", "nary", "one", "two"))

    def node(b: Any, x: Any) -> Any:
        return b.node(x)

    return [
        ("ChildSumTreeLSTMBuilder", child, node, vec, 3, "an input of 3 rows"),
        ("NaryTreeLSTMBuilder", nary, node, vec, 3, "an input of 3 rows"),
        ("UnidirectionalTreeLSTMBuilder", one, node, vec, 4, "an input of 4 rows"),
        ("UnidirectionalTreeLSTMBuilder", one, lambda b, x: b.node(vec(4), [vec(4), x]), vec, 4, "a child of 4 rows"),
        ("BidirectionalTreeLSTMBuilder", two, node, vec, 4, "an input of 4 rows"),
        ("BidirectionalTreeLSTMBuilder", two, lambda b, x: b.node(vec(4), [x]), vec, 4, "a child of 4 rows"),
    ]  # fmt: skip


def attentions() -> list[Slot]:
    mlp, dot, heads = (MAKE[k] for k in ("mlp", "dot", "heads"))

    def ask(a: Any, x: Any) -> Any:
        return a(x, a.remember([vec(2)]))

    return [
        ("MLPAttention", mlp, ask, vec, 3, "a query of 3 rows"),
        ("MLPAttention", mlp, lambda a, x: a.weights(x, a.remember(mat(2))), vec, 3, "a query of 3 rows"),
        ("MLPAttention", mlp, lambda a, x: a.remember([x]), vec, 2, "a memory of 2 rows"),
        ("MLPAttention", mlp, lambda a, x: a.remember(x), mat, 2, "a memory of 2 rows"),
        ("DotAttention", dot, ask, vec, 3, "a query of 3 rows"),
        ("DotAttention", dot, lambda a, x: a.remember(x), mat, 2, "a memory of 2 rows"),
        ("MultiHeadAttention", heads, lambda a, x: a(x), mat, 4, "a matrix of queries of 4 rows"),
        ("MultiHeadAttention", heads, lambda a, x: a(mat(4), x), mat, 4, "a memory of 4 rows"),
    ]  # fmt: skip


def layers() -> list[Slot]:
    crf, pairs = MAKE["crf"], MAKE["pairs"]
    return [
        ("LayerNorm", lambda m: nn.LayerNorm(3, m), lambda n, x: n(x), vec, 3, "a vector or matrix of 3 rows"),
        ("TransformerLayer", lambda m: nn.TransformerLayer(4, 2, 8, m), lambda t, x: t(x), mat, 4, "a matrix of 4 rows"),
        ("Transformer", lambda m: nn.Transformer(2, 4, 2, 8, m), lambda t, x: t(x), mat, 4, "a matrix of 4 rows"),
        ("Transformer", lambda m: nn.Transformer(2, 4, 2, 8, m), lambda t, x: t(x, causal=True), mat, 4, "a matrix of 4 rows"),
        ("Biaffine", lambda m: nn.Biaffine(m, 3, 4), lambda b, x: b.all_pairs(x, mat(4)), mat, 3, "a matrix of heads of 3 rows"),
        ("Biaffine", lambda m: nn.Biaffine(m, 3, 4), lambda b, x: b.all_pairs(mat(3), x), mat, 4, "a matrix of dependents of 4 rows"),
        ("Biaffine", pairs, lambda b, x: b.pairs(x, mat(4)), mat, 3, "a matrix of heads of 3 rows"),
        ("Biaffine", pairs, lambda b, x: b.pairs(mat(3), x), mat, 4, "a matrix of dependents of 4 rows"),
        ("GraphConvolution", lambda m: nn.GraphConvolution(m, 3, 4, 2), lambda g, x: g([vec(3), x], []), vec, 3, "a node of 3 rows"),
        ("LetterCNN", lambda m: nn.LetterCNN(m, 3, 4), lambda r, x: r([x]), vec, 3, "a letter of 3 rows"),
        ("LetterLSTM", lambda m: nn.LetterLSTM(m, 3, 4), lambda r, x: r([x]), vec, 3, "a letter of 3 rows"),
        ("LinearChainCRF", crf, lambda c, x: c.loss([vec(3), x], [0, 1]), vec, 3, "emissions of 3 rows"),
        ("LinearChainCRF", crf, lambda c, x: c.log_partition([x]), vec, 3, "emissions of 3 rows"),
        ("NegativeSampling", lambda m: nn.NegativeSampling(m, 3, [1, 2]), lambda n, x: n.loss(x, 1), vec, 3, "a vector of 3 rows"),
        ("BiRNNBuilder", lambda m: dy.BiRNNBuilder(2, 3, 4, m, dy.GRUBuilder), lambda b, x: b.transduce([vec(3), x]), vec, 3,
         "an input of 3 rows"),
        ("BiRNNBuilder", lambda m: dy.BiRNNBuilder(1, 3, 4, m, dy.LSTMBuilder), lambda b, x: b.add_inputs([x]), vec, 3, "an input of 3 rows"),
    ]  # fmt: skip


def softmaxes() -> list[Slot]:
    made: dict[str, Callable[[Any], Any]] = {
        "StandardSoftmaxBuilder": lambda m: dy.StandardSoftmaxBuilder(3, 5, m),
        "ClassFactoredSoftmaxBuilder": lambda m: dy.ClassFactoredSoftmaxBuilder(3, CLUSTERS, WORDS, m),
        "HierarchicalSoftmaxBuilder": lambda m: dy.HierarchicalSoftmaxBuilder(3, PATHS, WORDS, m),
    }
    calls = (lambda s, x: s.neg_log_softmax(x, 0), lambda s, x: s.full_log_distribution(x), lambda s, x: s.full_logits(x),
             lambda s, x: s.neg_log_softmax_batch(x, [0]), lambda s, x: s.sample(x))  # fmt: skip
    return [(kind, make, call, vec, 3, "an input of shape {3}") for kind, make in made.items() for call in calls]


SLOTS = [*(slot for kind in CELLS for slot in recurrent(kind)), *trees(), *attentions(), *layers(), *softmaxes()]


OPTIONAL = {  # None is right
    ("ChildSumTreeLSTMBuilder", "an input of 3 rows"),
    ("NaryTreeLSTMBuilder", "an input of 3 rows"),
    ("MultiHeadAttention", "a memory of 4 rows"),
}


@needs_311
@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot[0])
def test_arguments(slot: Slot) -> None:
    kind, make, call, right, n, noun = slot
    dy.renew_cg()
    made = make(dy.ParameterCollection())
    bads: list[tuple[Any, str]] = [] if (kind, noun) in OPTIONAL else [(None, "None")]
    for bad, got in (*bads, ("x", "'x'"), ({}, "a dict"), (object(), "an object")):
        found = fails(lambda bad=bad: call(made, bad))
        assert isinstance(found, TypeError), (bad, found)
        told = str(found)
        assert told.startswith(f"[{kind}] ") and noun in told and f"got {got}" in told, told
    found = fails(lambda: call(made, right(n + 1)))
    assert type(found) is ValueError
    assert str(found).startswith(f"[{kind}] ") and noun in str(found) and f"got {{{n + 1}" in str(found), found
    old = stale(right, n)
    found = fails(lambda: call(made, old))
    assert isinstance(found, dy.StaleExpressionError) and str(found).startswith(f"[{kind}] "), found
    assert "old graph" in str(found)
    call(made, right(n))  # the graph goes on


# ---- how they are made -------------------------------------------------------------------------------------------------

# A class, its right arguments, and which are sizes; "m" is the collection.
MADE: dict[str, tuple[Any, dict[str, Any]]] = {
    **{kind: (getattr(dy, kind), {"layers": 1, "input_dim": 3, "hidden_dim": 4, "model": "m"}) for kind in CELLS},
    "BiRNNBuilder": (dy.BiRNNBuilder, {"num_layers": 1, "hidden_dim": 4, "input_dim": 3, "model": "m", "rnn_builder_factory": dy.GRUBuilder}),
    "ChildSumTreeLSTMBuilder": (dy.ChildSumTreeLSTMBuilder, {"layers": 1, "input_dim": 3, "hidden_dim": 4, "model": "m"}),
    "NaryTreeLSTMBuilder": (dy.NaryTreeLSTMBuilder, {"N": 2, "layers": 1, "input_dim": 3, "hidden_dim": 4, "model": "m"}),
    "UnidirectionalTreeLSTMBuilder": (dy.UnidirectionalTreeLSTMBuilder, {"layers": 1, "input_dim": 4, "hidden_dim": 4, "model": "m"}),
    "BidirectionalTreeLSTMBuilder": (dy.BidirectionalTreeLSTMBuilder, {"layers": 1, "input_dim": 4, "hidden_dim": 4, "model": "m"}),
    "MLPAttention": (nn.MLPAttention, {"query_dim": 3, "memory_dim": 2, "hidden_dim": 5, "model": "m"}),
    "DotAttention": (nn.DotAttention, {"query_dim": 3, "memory_dim": 2, "model": "m"}),
    "MultiHeadAttention": (nn.MultiHeadAttention, {"dim": 4, "heads": 2, "model": "m"}),
    "LayerNorm": (nn.LayerNorm, {"dim": 3, "model": "m"}),
    "TransformerLayer": (nn.TransformerLayer, {"dim": 4, "heads": 2, "hidden": 8, "model": "m"}),
    "Transformer": (nn.Transformer, {"layers": 1, "dim": 4, "heads": 2, "hidden": 8, "model": "m"}),
    "Biaffine": (nn.Biaffine, {"model": "m", "head_dim": 3, "dependent_dim": 4}),
    "GraphConvolution": (nn.GraphConvolution, {"model": "m", "dim": 3, "out": 4, "kinds": 2}),
    "LetterCNN": (nn.LetterCNN, {"model": "m", "dim": 3, "filters": 4}),
    "LetterLSTM": (nn.LetterLSTM, {"model": "m", "dim": 3, "hidden": 4}),
    "LinearChainCRF": (nn.LinearChainCRF, {"model": "m", "labels": 3}),
    "NegativeSampling": (nn.NegativeSampling, {"model": "m", "dim": 3, "counts": [1, 2]}),
    "StandardSoftmaxBuilder": (dy.StandardSoftmaxBuilder, {"input_dim": 3, "num_classes": 5, "pc": "m"}),
    "ClassFactoredSoftmaxBuilder": (dy.ClassFactoredSoftmaxBuilder, {"input_dim": 3, "cluster_file": CLUSTERS, "dic": WORDS, "pc": "m"}),
    "HierarchicalSoftmaxBuilder": (dy.HierarchicalSoftmaxBuilder, {"input_dim": 3, "cluster_file": PATHS, "dic": WORDS, "pc": "m"}),
}  # fmt: skip


@needs_311
@pytest.mark.parametrize("kind", MADE)
def test_making(kind: str) -> None:
    cls, given = MADE[kind]
    right = {name: dy.ParameterCollection() if value == "m" else value for name, value in given.items()}
    cls(**right)
    for name, value in given.items():
        if value == "m":
            bads: list[Any] = [None, "x", 3]
        elif isinstance(value, int):
            bads = [None, "x", -1, 2.5]
        else:
            continue
        for bad in bads:
            found = fails(lambda name=name, bad=bad: cls(**{**right, name: bad}))
            assert isinstance(found, (TypeError, ValueError)), (name, bad, found)
            assert str(found).startswith(f"[{kind}] {name} must be "), (name, bad, found)
            assert str(bad) in str(found)


# ---- the rest ----------------------------------------------------------------------------------------------------------


def reader(m: Any) -> Any:
    return nn.WordReader(m, nn.WordReader.build([["a", "b"]]), dim=3, rng=random.Random(1))


OTHERS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "set_h of too few": (lambda m: dy.LSTMBuilder(2, 3, 4, m).initial_state().set_h([vec(4)]), ValueError,
                         "[VanillaLSTMBuilder] set_h() takes 2 expressions for 2 layers; got 1"),
    "set_s of too many": (lambda m: dy.LSTMBuilder(2, 3, 4, m).initial_state().set_s([vec(4)] * 3), ValueError,
                          "[VanillaLSTMBuilder] set_s() takes 2 or 4 expressions for 2 layers; got 3"),
    "set_s of None": (lambda m: dy.GRUBuilder(1, 3, 4, m).initial_state().set_s(None), TypeError,
                      "[GRUBuilder] set_h() takes a list of expressions of shape {4}; got None"),
    "set_h of one": (lambda m: dy.GRUBuilder(1, 3, 4, m).initial_state().set_h(vec(4)), TypeError, "[GRUBuilder] set_h() takes a list"),
    "inputs that are none": (lambda m: dy.LSTMBuilder(1, 3, 4, m).initial_state().transduce(None), TypeError,
                             "[VanillaLSTMBuilder] a list of inputs is needed; got None"),
    "a rate": (lambda m: dy.LSTMBuilder(1, 3, 4, m).set_dropout(2), ValueError, "[VanillaLSTMBuilder: set_dropout] a rate must be in [0, 1); got 2"),
    "a rate, None": (lambda m: dy.LSTMBuilder(1, 3, 4, m).set_dropout(None), TypeError, "[VanillaLSTMBuilder: set_dropout] a rate must be a number"),
    "children, too many": (lambda m: (b := dy.NaryTreeLSTMBuilder(2, 1, 3, 4, m)).node(vec(3), [b.node(vec(3)) for _ in range(3)]),
                           ValueError, "[NaryTreeLSTMBuilder] a node has at most 2 children (N); got 3"),
    "children, no nodes": (lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m).node(vec(3), [vec(4)]), TypeError,
                           "[ChildSumTreeLSTMBuilder] children are what node() gave; got InputExpression"),
    "children, none": (lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m).node(vec(3), 3), TypeError,
                       "[ChildSumTreeLSTMBuilder] children are a list of what node() gave; got int"),
    "numbered, not begun": (lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m).add_input(0, [], vec(3)), IndexError,
                            "[ChildSumTreeLSTMBuilder: add_input] node 0 of a tree of 0 nodes"),
    "stack": (lambda m: dy.StackedRNNState([dy.LSTMBuilder(1, 3, 4, m).initial_state()]).add_input(vec(2)), ValueError,
              "[StackedRNNState: VanillaLSTMBuilder] an input of shape {3} is needed; got {2}"),
    "stack of words": (lambda m: nn.StackLSTM(dy.LSTMBuilder(1, 3, 4, m).initial_state().add_input(vec(3))).push(vec(2)), ValueError,
                       "[StackLSTM: VanillaLSTMBuilder] an input of shape {3} is needed; got {2}"),
    "stack, empty": (lambda m: nn.StackLSTM(dy.LSTMBuilder(1, 3, 4, m).initial_state()), ValueError, "[StackLSTM] "),
    "labels": (lambda m: nn.LinearChainCRF(m, 3).loss([vec(3)], ["N"]), TypeError, "[LinearChainCRF] labels must be whole numbers; got 'N'"),
    "label": (lambda m: nn.LinearChainCRF(m, 3).loss([vec(3)], [3]), IndexError, "[LinearChainCRF] label 3: there are 3"),
    "labels, too few": (lambda m: nn.LinearChainCRF(m, 3).loss([vec(3)] * 2, [1]), ValueError,
                        "[LinearChainCRF] a label for each word is needed; got 1 for 2"),
    "emissions of sentences": (lambda m: nn.LinearChainCRF(m, 3).best([np.zeros((4, 2))]), ValueError,
                               "[LinearChainCRF] emissions of a sentence are an array (words, 3); got (4, 2)"),
    "emissions": (lambda m: nn.LinearChainCRF(m, 3).loss(None, [1]), TypeError, "[LinearChainCRF] a list is needed, emissions of 3 rows each; got None"),
    "word": (lambda m: nn.NegativeSampling(m, 3, [1, 2]).loss(vec(3), 2), IndexError, "[NegativeSampling] word 2: there are 2"),
    "word, a string": (lambda m: nn.NegativeSampling(m, 3, [1, 2]).loss(vec(3), ["a"]), TypeError, "[NegativeSampling] words must be whole numbers; got 'a'"),
    "class": (lambda m: dy.StandardSoftmaxBuilder(3, 5, m).neg_log_softmax(vec(3), 5), IndexError, "[StandardSoftmaxBuilder: pickneglogsoftmax] "),
    "class, a string": (lambda m: dy.StandardSoftmaxBuilder(3, 5, m).neg_log_softmax(vec(3), "a"), TypeError,
                        "[StandardSoftmaxBuilder] classes must be whole numbers; got 'a'"),
    "memory": (lambda m: nn.MLPAttention(3, 2, 5, m)(vec(3), mat(2)), TypeError, "[MLPAttention] a memory that remember() gave is needed; got {2,5}"),
    "columns": (lambda m: nn.Transformer(1, 4, 2, 8, m)([vec(4)] * 2), TypeError, "[Transformer] a matrix of 4 rows is needed; got a list"),
    "columns, to normalise": (lambda m: nn.LayerNorm(4, m)([vec(4)]), TypeError, "[LayerNorm] a vector or matrix of 4 rows is needed; got a list"),
    "columns, to look at": (lambda m: nn.MultiHeadAttention(4, 2, m)(mat(4), (vec(4), vec(4))), TypeError,
                            "[MultiHeadAttention] a memory of 4 rows is needed; got a tuple"),
    "nodes": (lambda m: nn.GraphConvolution(m, 3, 4, 2)(None, []), TypeError, "[GraphConvolution] a list is needed, a node of 3 rows each; got None"),
    "no cell": (lambda m: dy.CellBuilder(vec), TypeError, "[CellBuilder] a cell is needed: write @dy.cell above vec"),
    "no state": (lambda m: dy.CellBuilder(step).initial_state(), ValueError, "[CellBuilder] initial_state() needs a state"),
    "cell, an input": (lambda m: dy.CellBuilder(step).initial_state(vec(3)).add_input(vec(4)), ValueError, "[CellBuilder: x + y] dims must be equal"),
    "cell, inputs": (lambda m: dy.CellBuilder(step).initial_state(vec(3)).transduce([vec(3), vec(3), vec(4)]), ValueError,
                     "[CellBuilder: x + y] dims must be equal"),
    "cell, no input": (lambda m: dy.CellBuilder(step).initial_state(vec(3)).add_input(None), TypeError, "unsupported operand"),
    "words": (lambda m: reader(m)(None), TypeError, "[WordReader] "),
}  # fmt: skip


@needs_311
@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str) -> None:
    call, kind, text = OTHERS[case]
    dy.renew_cg()
    found = fails(lambda: call(dy.ParameterCollection()))
    assert isinstance(found, kind), found
    assert str(found).startswith(text), found
    assert dy.sum_elems(vec(3)).value() == 3  # the graph goes on


@needs_311
def test_cells_of_builders_say_what_they_got() -> None:
    """The words of the op, then the shapes; the trace ends in the cell. Words of the user's stay, with a note from Python 3.11 on."""
    dy.renew_cg()
    start = dy.CellBuilder(step).initial_state(vec(3))
    for call, got in ((lambda: start.add_input(vec(4)), "an input {4} in a state {3}"),
                      (lambda: start.transduce([vec(3), vec(3), vec(4)]), "an input {4}, the inputs before it {3} (number 2 of 3) in a state {3}")):  # fmt: skip
        error = fails(call)
        assert str(error).endswith(f"got {{3}}, {{4}}; the cell step got {got}"), error
    pairs = dy.CellBuilder(dy.cell(lambda s, x: dy.state(h=s.h + x, c=s.c))).initial_state(dy.state(h=vec(3), c=vec(2)))
    assert str(fails(lambda: pairs.add_input(vec(4)))).endswith(
        "the cell <lambda> got an input {4} in a state h={3}, c={2}"
    )
    error = fails(lambda: start.add_input(None))
    assert error.__notes__ == ["[CellBuilder] the cell step got an input None in a state {3}"]  # type: ignore[attr-defined]


@needs_311
def test_errors_of_the_users_own_functions_stay() -> None:
    """Those that a part calls: their lines are in the trace, and their words are theirs."""

    def mine(*args: Any) -> Any:
        raise ValueError("mine")

    for call in (lambda: dy.BiRNNBuilder(1, 3, 4, dy.ParameterCollection(), mine), lambda: dy.CellBuilder(step, zero=mine).initial_state(),
                 lambda: dy.compile(mine)([1])):  # fmt: skip
        error = fails(call)
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        assert str(error) == "mine" and trace is not None and trace.tb_frame.f_code is mine.__code__


def test_compiled_functions_leave_no_frame() -> None:
    """Ops, states, and functions that were compiled with dy.compile."""
    dy.renew_cg()
    wrong = dy.compile(lambda words: dy.pick(dy.inputVector(np.ones(3)), words[0]))
    for call in (lambda: dy.tanh("x"), lambda: vec(3) + vec(4), lambda: dy.affine_transform([vec(3), vec(4)]), lambda: vec(3)[7],
                 lambda: wrong([7]), lambda: vec(3).backward(), lambda: dy.ParameterCollection().add_parameters((0, -1))):  # fmt: skip
        error: Any = None
        try:
            call()  # type: ignore[no-untyped-call]
        except Exception as found:
            error = found
        assert error is not None
        names, trace = [], error.__traceback__
        while trace is not None:
            names.append(trace.tb_frame.f_globals["__name__"])
            trace = trace.tb_next
        assert "dynet_lite._core" not in names


@pytest.mark.parametrize("kind", [dy.LSTMBuilder, dy.GRUBuilder, dy.ChildSumTreeLSTMBuilder])
def test_a_size_as_the_number_of_layers(kind: Any) -> None:
    """It would make layers until the memory is full."""
    model = dy.ParameterCollection()
    for n in (10**9, 1e300):
        with pytest.raises(ValueError, match=r"Builder\] layers must be 10000 or less"):
            kind(n, 3, 3, model)
    with pytest.raises(ValueError, match=r"\[BiRNNBuilder\] num_layers must be 10000 or less"):
        dy.BiRNNBuilder(10**9, 3, 4, model, dy.LSTMBuilder)
    assert not model.parameters_list()


def test_a_size_as_another_number() -> None:
    """Children, nodes, layers and kinds, which have weights or places of their own."""
    model = dy.ParameterCollection()
    tree = dy.NaryTreeLSTMBuilder(2, 1, 3, 4, model)
    for call, text in (
        (lambda: dy.NaryTreeLSTMBuilder(2**31, 1, 3, 4, model), r"\[NaryTreeLSTMBuilder\] N must be 10000 or less"),
        (lambda: tree.set_num_elements(2**40), r"\[NaryTreeLSTMBuilder\] the number of nodes must be 10000000 or less"),
        (lambda: nn.Transformer(2**31, 4, 2, 8, model), "10000 layers at most"),
        (lambda: nn.GraphConvolution(model, 3, 4, 2**31), "kinds must be 100000 or less"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize("kind", [dy.ClassFactoredSoftmaxBuilder, dy.HierarchicalSoftmaxBuilder])
def test_cluster_lines_are_text(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"\[{kind.__name__}\] cluster line 1 must be text; got 3"):
        kind(3, [3], {"x": 0}, dy.ParameterCollection())
