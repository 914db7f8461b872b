"""States of the sequence builders: what they hold, how they go on, how they fail."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

BUILDERS = [dy.SimpleRNNBuilder, dy.GRUBuilder, dy.VanillaLSTMBuilder, dy.CompactVanillaLSTMBuilder, dy.CoupledLSTMBuilder,
            dy.FastLSTMBuilder]  # fmt: skip
LAYERS, IN, HIDDEN = 2, 5, 6


@pytest.mark.parametrize("make", BUILDERS)
def test_contents_decide(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    rng = np.random.default_rng(4)
    dy.renew_cg()
    x, y = (dy.inputVector(rng.standard_normal(IN)) for _ in range(2))
    h, c = ([dy.inputVector(rng.standard_normal(HIDDEN)) for _ in range(LAYERS)] for _ in range(2))
    first = builder.initial_state().add_input(x)
    whole = [*c, *h] if builder.has_cell else h

    def same(state: dy.RNNState, contents: list) -> None:
        for a, b in zip(state.s(), contents, strict=True):
            np.testing.assert_array_equal(a.npvalue(), b.npvalue())
        expected = builder.initial_state(contents).add_input(y)
        for a, b in zip(state.add_input(y).s(), expected.s(), strict=True):
            np.testing.assert_allclose(a.npvalue(), b.npvalue(), rtol=1e-6, atol=1e-7)

    same(first.set_s(whole), whole)
    same(builder.initial_state().set_s(whole), whole)
    cells = list(first.s()[:LAYERS]) if builder.has_cell else []
    same(first.set_h(h), [*cells, *h])
    if builder.has_cell:
        same(first.set_s(c), [*c, *first.h()])
    assert first.set_h(h).prev() is first


# ---- the rest of the state API ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BUILDERS)
def test_before_any_input(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    state = builder.initial_state()
    assert (state.output(), state.prev(), state.h(), state.s()) == (None, None, (), ())
    assert state.b() is builder
    assert state.transduce([]) == [] == state.add_inputs([])


@pytest.mark.parametrize("make", BUILDERS)
def test_states_branch(make: type) -> None:
    """States never change: two ways on from one state, and a second sequence beside the first."""
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((3, IN))
    dy.renew_cg()
    first = builder.initial_state().add_input(dy.inputVector(xs[0]))
    one, two = (first.add_input(dy.inputVector(x)) for x in xs[1:])
    other = builder.initial_state().add_input(dy.inputVector(xs[2]))
    again = first.add_input(dy.inputVector(xs[1]))
    assert one.prev() is first
    assert len(one.h()) == LAYERS
    assert len(one.s()) == LAYERS * (2 if builder.has_cell else 1)
    np.testing.assert_array_equal(one.output().npvalue(), again.output().npvalue())
    assert not np.allclose(one.output().npvalue(), two.output().npvalue())
    assert not np.allclose(first.output().npvalue(), other.output().npvalue())
    np.testing.assert_array_equal(one.output().npvalue(), one.h()[-1].npvalue())
    for a, b in zip(one.h(), one.s()[-LAYERS:], strict=True):
        assert a is b


@pytest.mark.parametrize("make", BUILDERS)
def test_wrong_use(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    vec = dy.inputVector(np.ones(HIDDEN))
    with pytest.raises(ValueError, match="expressions are needed"):
        builder.initial_state([vec] * (2 * LAYERS + 1))
    with pytest.raises(ValueError, match=r"set_h\(\) takes 2 expressions for 2 layers; got 1"):
        builder.initial_state().set_h([vec])
    with pytest.raises(TypeError):
        builder.initial_state().set_h(vec)
    with pytest.raises(TypeError):
        builder.initial_state().set_s(None)
    with pytest.raises(ValueError):
        builder.initial_state().add_input(dy.inputVector(np.ones(IN + 1)))
    wide = [dy.inputVector(np.ones(HIDDEN + 1))] * (2 * LAYERS if builder.has_cell else LAYERS)
    with pytest.raises(ValueError):
        builder.initial_state(wide).add_input(dy.inputVector(np.ones(IN)))
    with pytest.raises(TypeError):
        builder.initial_state().add_input(None)
    with pytest.raises(TypeError):
        builder.initial_state().transduce([None])
    for bad in ((0, IN, HIDDEN), (1, -1, HIDDEN), (1, IN, 0.5), (1, IN, "x")):
        with pytest.raises(ValueError):
            make(*bad, dy.ParameterCollection())


@pytest.mark.parametrize("make", BUILDERS)
def test_stale_states(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    state = builder.initial_state()
    after = state.add_input(dy.inputVector(np.ones(IN)))
    dy.renew_cg()
    x = dy.inputVector(np.ones(IN))
    for old in (state, after):
        with pytest.raises(dy.StaleExpressionError):
            old.add_input(x)
        with pytest.raises(dy.StaleExpressionError):
            old.transduce([x])
    builder.initial_state().add_input(x).output().npvalue()


@pytest.mark.parametrize("make", BUILDERS)
def test_after_a_revert(make: type) -> None:
    builder = make(1, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    x = dy.inputVector(np.ones(IN))
    dy.cg_checkpoint()
    first = builder.initial_state().add_input(x).output().npvalue()
    dy.cg_revert()
    y = dy.tanh(x)
    np.testing.assert_array_equal(builder.initial_state().add_input(x).output().npvalue(), first)
    assert y.npvalue().shape == (IN,)


OF_ORDINARY_NODES = {
    "normed": lambda m: dy.VanillaLSTMBuilder(LAYERS, IN, HIDDEN, m, ln_lstm=True),
    "normed, dropout": lambda m: dy.VanillaLSTMBuilder(LAYERS, IN, HIDDEN, m, ln_lstm=True),
    "coupled, dropout": lambda m: dy.CoupledLSTMBuilder(LAYERS, IN, HIDDEN, m),
    "GRU, dropout": lambda m: dy.GRUBuilder(LAYERS, IN, HIDDEN, m),
}


@pytest.mark.parametrize("kind", OF_ORDINARY_NODES)
def test_a_state_first_used_after_a_mark(kind: str) -> None:
    """It can be used after the revert, too, but not in another graph."""
    builder = OF_ORDINARY_NODES[kind](dy.ParameterCollection())
    builder.set_dropout(0.5 if "dropout" in kind else 0.0)
    dy.renew_cg()
    state = builder.initial_state()
    for _ in range(3):
        dy.cg_checkpoint()
        after = state.transduce([dy.inputVector(np.ones(IN))] * 2)
        assert np.isfinite(after[-1].npvalue()).all()
        dy.cg_revert()
    assert len(builder.get_parameter_expressions()) == LAYERS
    state.add_input(dy.inputVector(np.ones(IN))).output().npvalue()
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        state.add_input(dy.inputVector(np.ones(IN))).output().npvalue()
    with pytest.raises(dy.StaleExpressionError):
        builder.get_parameter_expressions()


@pytest.mark.parametrize("make", [dy.GRUBuilder, dy.VanillaLSTMBuilder])
def test_an_output_first_asked_for_after_a_mark(make: type) -> None:
    """A GRU with dropout makes it then; the state itself is older, and gives another one after the revert."""
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    builder.set_dropout(0.5)
    dy.renew_cg()
    state = builder.initial_state().add_input(dy.inputVector(np.ones(IN)))
    dy.cg_checkpoint()
    assert state.output() is state.output()
    state.output().npvalue()
    dy.cg_revert()
    assert np.isfinite(state.output().npvalue()).all() and state.output() is state.output()
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        state.output().npvalue()


def test_a_state_of_no_recurrent_builder() -> None:
    builder = dy.CellBuilder(dy.cell(lambda h, x: h + x), lambda: dy.zeros(2))
    with pytest.raises(TypeError, match=r"\[RNNState\] a recurrent builder is needed; got CellBuilder"):
        dy.RNNState(builder)
    with pytest.raises(ValueError, match="state_idx"):
        dy.RNNState(dy.GRUBuilder(1, IN, HIDDEN, dy.ParameterCollection()), "first")  # type: ignore[arg-type]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("make", [*BUILDERS, dy.SparseLSTMBuilder])
def test_states_first_used_after_a_mark(make: type, dropout: float) -> None:
    """Two of them, of which the second takes over what the first has made."""
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    builder.set_dropout(dropout)
    dy.renew_cg()
    states = [builder.initial_state(), builder.initial_state()]
    found = []
    for _ in range(3):
        dy.cg_checkpoint()
        for state in states:
            xs = [dy.inputVector(np.ones(IN))] * 2
            found.append(state.add_input(xs[0]).add_input(xs[1]).output().npvalue())
            found += [state.transduce(xs)[-1].npvalue(), state.add_inputs(xs)[-1].output().npvalue()]
        dy.cg_revert()
    for one in found:
        assert dropout or np.allclose(one, found[0], rtol=1e-6)
    states[0].add_input(dy.inputVector(np.ones(IN)))
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        states[0].add_input(dy.inputVector(np.ones(IN))).output().npvalue()


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("make", [*BUILDERS, dy.SparseLSTMBuilder])
def test_after_an_update_in_the_same_graph(make: type, update: bool) -> None:
    """A sequence that starts after an update has the new weights; one that goes on ends as it began."""
    model = dy.ParameterCollection()
    builder, trainer = make(LAYERS, IN, HIDDEN, model), dy.SimpleSGDTrainer(model, 1.0)

    def begun() -> dy.RNNState:
        return builder.initial_state(update=update).add_input(dy.inputVector(np.ones(IN)))

    def ended(state: dy.RNNState) -> np.ndarray:
        return state.transduce([dy.inputVector(np.ones(IN))] * 2)[-1].npvalue()

    dy.renew_cg()
    old = begun()
    before = ended(old)
    dy.squared_norm(builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 3)[-1]).backward()
    trainer.update()
    after = ended(begun())
    assert np.isfinite(ended(old)).all()
    dy.renew_cg()
    np.testing.assert_allclose(after, ended(begun()), rtol=1e-6)
    assert not np.allclose(after, before)


@pytest.mark.parametrize("make", BUILDERS)
def test_weights_are_listed_once(make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the layers are made of is looked up for the first graph alone, and the weights enter each as they are then."""
    model = dy.ParameterCollection()
    builder, trainer = make(LAYERS, IN, HIDDEN, model), dy.SimpleSGDTrainer(model, 0.1)
    listed = []

    def counted(self: Any, layer: Any, weights: Any = make._cell_weights) -> Any:  # type: ignore[attr-defined]
        listed.append(layer)
        return weights(self, layer)

    def last(builder: Any) -> Any:
        return builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 3)[-1]

    monkeypatch.setattr(make, "_cell_weights", counted)
    found, expected = [], []
    for step in range(4):
        dy.renew_cg()
        model.parameters_list()[0].set_updated(step != 2)
        model.reset_gradient()
        h, other = last(builder), copy.deepcopy((builder, model))[0]
        found.append(h.npvalue())
        expected.append(last(other).npvalue())
        dy.squared_norm(h).backward()
        assert model.parameters_list()[0].grad_as_array().any() == (step != 2)
        trainer.update()
    np.testing.assert_array_equal(found, expected)
    assert len(listed) == LAYERS * (1 + len(found))  # the copies list theirs


def test_a_forget_bias_that_is_changed() -> None:
    builder = dy.VanillaLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection())
    found = []
    for bias in (1.0, 1.0, 3.0):
        dy.renew_cg()
        builder.forget_bias = bias
        found.append(builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 3)[-1].npvalue())
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_no_inputs_enter_no_weights() -> None:
    builder = dy.GRUBuilder(1, IN, HIDDEN, dy.ParameterCollection())
    graph = dy.renew_cg()
    assert builder.initial_state().transduce([]) == builder.initial_state().add_inputs([]) == []
    assert len(graph) == 0


@pytest.mark.parametrize("make", BUILDERS)
def test_update_flag_counts_for_each_call(make: type) -> None:
    model = dy.ParameterCollection()
    builder = make(1, IN, HIDDEN, model)
    dy.renew_cg()
    x = dy.inputVector(np.ones(IN))

    def moved(update: bool) -> bool:
        model.reset_gradient()
        dy.squared_norm(builder.initial_state(update=update).transduce([x, x])[-1]).backward()
        return any(p.grad_as_array().any() for p in model.parameters_list())

    assert [moved(u) for u in (True, False, True, False)] == [True, False, True, False]


@pytest.mark.parametrize("make", BUILDERS)
def test_parameter_expressions(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    with pytest.raises(ValueError, match="initial_state"):
        builder.get_parameter_expressions()
    builder.initial_state()
    shown = builder.get_parameter_expressions()
    assert [[e.dim()[0] for e in layer] for layer in shown] == [
        [p.shape() for p in layer] for layer in builder.get_parameters()
    ]
    dy.renew_cg()
    with pytest.raises(ValueError, match="initial_state"):
        builder.get_parameter_expressions()


@pytest.mark.parametrize("make", BUILDERS)
def test_raw_vectors_and_arrays(make: type) -> None:
    builder = make(1, IN, HIDDEN, dy.ParameterCollection())
    raw = [list(range(HIDDEN))] * (2 if builder.has_cell else 1)
    dy.renew_cg()
    for state in (builder.initial_state_from_raw_vectors(raw), builder.initial_state([np.array(v) for v in raw])):
        np.testing.assert_array_equal(state.s()[0].npvalue(), raw[0])
        assert state.prev() is None
    assert builder.initial_state().add_input(np.ones(IN)).output().dim() == ((HIDDEN,), 1)


@pytest.mark.parametrize("make", BUILDERS)
def test_spec_and_copies(make: type) -> None:
    model = dy.ParameterCollection()
    builder = make(LAYERS, IN, HIDDEN, model)
    twin = make.from_spec(builder.spec, dy.ParameterCollection())
    assert twin.whoami() == make.__name__
    assert [[p.shape() for p in a] for a in twin.get_parameters()] == [
        [p.shape() for p in a] for a in builder.get_parameters()
    ]
    dy.renew_cg()
    x = dy.inputVector(np.ones(IN))
    out = builder.initial_state().add_input(x).output()
    for other in (copy.deepcopy(builder), pickle.loads(pickle.dumps(builder))):
        np.testing.assert_array_equal(other.initial_state().add_input(x).output().npvalue(), out.npvalue())


def test_ln_parameters_belong_to_the_builder() -> None:
    model = dy.ParameterCollection()
    builder = dy.VanillaLSTMBuilder(2, IN, HIDDEN, model, True)
    assert len(builder.param_collection().parameters_list()) == 2 * 9 == len(model.parameters_list())


def test_matrices_as_inputs() -> None:
    """Columns of a matrix run side by side, as elements of a mini-batch do."""
    for make in BUILDERS:
        builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
        dy.renew_cg()
        a = np.random.default_rng(0).standard_normal((3, IN, 4))
        columns = builder.initial_state().transduce([dy.inputTensor(x) for x in a])[-1]
        batch = builder.initial_state().transduce([dy.inputTensor(x, batched=True) for x in a])[-1]
        assert columns.dim() == ((HIDDEN, 4), 1)
        np.testing.assert_allclose(columns.npvalue(), batch.npvalue(), rtol=1e-5, atol=1e-6)


def test_birnn() -> None:
    model = dy.ParameterCollection()
    builder = dy.BiRNNBuilder(2, IN, HIDDEN, model, dy.GRUBuilder)
    assert dy.BiRNNBuilder.from_spec(builder.spec, dy.ParameterCollection()).whoami() == "BiRNNBuilder"
    dy.renew_cg()
    xs = [dy.inputVector(np.full(IN, k / 3)) for k in range(4)]
    outs, states = builder.transduce(xs), builder.add_inputs(iter(xs))
    assert [e.dim() for e in outs] == [((HIDDEN,), 1)] * 4
    for e, (ahead, back) in zip(outs, states, strict=True):
        both = np.concatenate([ahead.output().npvalue(), back.output().npvalue()])
        np.testing.assert_allclose(e.npvalue(), both, atol=1e-6)
    assert builder.transduce([]) == []
    pairs = [(dy.GRUBuilder(1, IN, 3, model), dy.GRUBuilder(1, IN, 3, model))]
    given = dy.BiRNNBuilder(1, IN, HIDDEN, model, dy.GRUBuilder, iter(pairs))
    assert given.builder_layers == pairs == given.spec[-1]
    assert len(pickle.loads(pickle.dumps((model, given)))[1].builder_layers) == 1
    with pytest.raises(
        ValueError, match=r"\[BiRNNBuilder\] builder_layers: a pair of builders for each layer is needed"
    ):
        dy.BiRNNBuilder(1, IN, HIDDEN, model, dy.GRUBuilder, [])
    with pytest.raises(ValueError, match="even"):
        dy.BiRNNBuilder(1, IN, 5, model, dy.GRUBuilder)
    pairs = [(dy.GRUBuilder(1, IN, 2, model), dy.LSTMBuilder(1, IN, 3, model))]
    (out,) = dy.BiRNNBuilder(1, IN, HIDDEN, model, None, pairs).transduce(xs[:1])
    assert out.dim() == ((5,), 1)


def test_stacked_states() -> None:
    model = dy.ParameterCollection()
    low, high = dy.GRUBuilder(1, IN, HIDDEN, model), dy.LSTMBuilder(2, HIDDEN, 3, model)
    dy.renew_cg()
    xs = [dy.inputVector(np.full(IN, k / 3)) for k in range(3)]
    start = dy.StackedRNNState([low.initial_state(), high.initial_state()])
    assert start.output() is None
    assert start.prev() is None
    states = start.add_inputs(xs)
    assert states[1].prev() is states[0]
    assert (len(states[-1].h()), len(states[-1].s())) == (3, 5)
    expected = high.initial_state().transduce(low.initial_state().transduce(xs))
    for state, out, e in zip(states, start.transduce(xs), expected, strict=True):
        np.testing.assert_array_equal(state.output().npvalue(), e.npvalue())
        np.testing.assert_array_equal(out.npvalue(), e.npvalue())
    with pytest.raises(ValueError):
        dy.StackedRNNState([])


def test_a_long_chain_of_states_goes_in_one_piece() -> None:
    builder = dy.VanillaLSTMBuilder(1, 2, 2, dy.ParameterCollection())
    dy.renew_cg()
    x, state = dy.inputTensor([0.1, 0.2]), builder.initial_state()
    for _ in range(200_000):
        state = state.add_input(x)
    del state  # each holds the one before it


# ---- transduce() along a tree ----------------------------------------------------------------------------------------

TREE = [-1, 0, 1, 1, 0, 4, -1, 6, 5, 3]  # a stack that grows and shrinks, begun twice


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("make", "masks"), [*((b, False) for b in BUILDERS), *((b, True) for b in BUILDERS[2:4])])
def test_transduce_along_a_tree(make: type, begun: bool, masks: bool) -> None:
    """As add_input() on the states that are followed: values, and gradients of inputs and weights."""
    model = dy.ParameterCollection()
    builder = make(LAYERS, IN, HIDDEN, model)
    if masks:  # of a whole run
        builder.set_dropouts(0.3, 0.3)
    rng = np.random.default_rng(1)
    xs, weights = rng.standard_normal((len(TREE), IN)), rng.standard_normal((len(TREE), HIDDEN))

    def run(bulk: bool) -> list[np.ndarray]:
        dy.reset_random_seed(3)
        model.reset_gradient()
        dy.renew_cg()
        inputs = [dy.inputVector(x) for x in xs]
        start = builder.initial_state()
        if begun:
            start = start.add_input(dy.inputVector(np.ones(IN)))
        if bulk:
            outputs = start.transduce(iter(inputs), after=np.array(TREE))
        else:
            states: list[dy.RNNState] = []
            for x, before in zip(inputs, TREE, strict=True):
                states.append((states[before] if before >= 0 else start).add_input(x))
            outputs = [state.output() for state in states]
        loss = dy.esum([dy.dot_product(o, dy.inputVector(w)) for o, w in zip(outputs, weights, strict=True)])
        loss.backward(full=True)
        return (
            [o.npvalue() for o in outputs]
            + [x.gradient() for x in inputs]
            + [p.grad_as_array() for p in model.parameters_list()]
        )

    for one, other in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", BUILDERS)
def test_transduce_along_a_tree_with_dropout(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    builder.set_dropout(0.4)
    dy.renew_cg()
    inputs = [dy.inputVector(np.full(IN, k)) for k in range(len(TREE))]
    outputs = builder.initial_state().transduce(inputs, TREE)
    assert [o.dim() for o in outputs] == [((HIDDEN,), 1)] * len(TREE)
    assert all(np.isfinite(o.npvalue()).all() for o in outputs)


@pytest.mark.parametrize("make", BUILDERS)
def test_transduce_along_a_sequence(make: type) -> None:
    """-1, 0, 1, ... is what happens without `after`."""
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    xs = [dy.inputVector(np.full(IN, k)) for k in range(4)]
    start = builder.initial_state()
    for one, other in zip(start.transduce(xs, range(-1, 3)), start.transduce(xs), strict=True):
        np.testing.assert_array_equal(one.npvalue(), other.npvalue())
    assert start.transduce([], []) == []


@pytest.mark.parametrize(
    ("after", "error", "message"),
    [
        ([-1], ValueError, "each of 2 inputs; got 1"),
        ([-1, 0, 1], ValueError, "each of 2 inputs; got 3"),
        ([-1, 1], ValueError, r"after\[1\].*got 1"),
        ([0, 0], ValueError, r"after\[0\].*got 0"),
        ([-1, -2], ValueError, r"after\[1\].*got -2"),
        ([-1, 0.5], ValueError, "a number of `after` must be a whole number; got 0.5"),
        ([-1, None], TypeError, "a number of `after` must be a whole number; got None"),
        (7, TypeError, "`after` needs a list of 2 numbers; got int"),
    ],
)
@pytest.mark.parametrize("make", [dy.GRUBuilder, dy.CoupledLSTMBuilder])
def test_transduce_along_no_tree(make: type, after: object, error: type[Exception], message: str) -> None:
    """Nothing is added to the graph."""
    builder = make(1, IN, HIDDEN, dy.ParameterCollection())
    dy.renew_cg()
    xs = [dy.inputVector(np.ones(IN))] * 2
    state = builder.initial_state()
    state.transduce(xs)
    before = len(dy.cg().nodes())
    with pytest.raises(error, match=message):
        state.transduce(xs, after)
    assert len(dy.cg().nodes()) == before


@pytest.mark.parametrize("compiled", [False, True])
def test_masks_of_sparse_weights_are_not_trained(compiled: bool) -> None:
    """Releasing all weights of a model releases these, too; weight decay would then shrink them."""
    model = dy.ParameterCollection()
    builder = dy.SparseLSTMBuilder(2, 3, 4, model)
    builder.set_sparsity(0.5)
    trainer = dy.AdamWTrainer(model, 0.1)
    model.set_updated(False)
    model.set_updated(True)

    def loss(x: Any) -> Any:
        return dy.squared_norm(builder.initial_state().transduce([x, x])[-1])

    step = dy.compile(loss, trainer=trainer)
    for _ in range(4):
        if compiled:
            step(np.ones(3))
        else:
            dy.renew_cg()
            loss(dy.inputVector(np.ones(3))).backward()
            trainer.update()
    for _, _, _, *masks in builder.get_parameters():
        assert all(set(np.unique(mask.as_array())) == {0.0, 1.0} for mask in masks)
