"""Dropout of the builders: what is masked, how often, and that it can be switched off."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

IN, HIDDEN = 4, 5
VARIATIONAL = [dy.SimpleRNNBuilder, dy.VanillaLSTMBuilder, dy.CompactVanillaLSTMBuilder, dy.SparseLSTMBuilder]
SINGLE_RATE = [dy.GRUBuilder, dy.CoupledLSTMBuilder, dy.FastLSTMBuilder]


def outputs(builder: Any, xs: list[np.ndarray]) -> list[np.ndarray]:
    es = [dy.inputTensor(x, batched=x.ndim > 1) for x in xs]
    return [e.npvalue() for e in builder.initial_state().transduce(es)]


def linear_rnn(p_x: float, p_h: float, layers: int = 1) -> Any:
    """A simple RNN that is nearly linear: tiny weights, so outputs show the masks."""
    builder = dy.SimpleRNNBuilder(layers, IN, IN, dy.ParameterCollection())
    for wx, wh, b in builder.get_parameters():
        wx.set_value(0.01 * np.eye(IN))
        wh.set_value(np.eye(IN))
        b.zero()
    builder.set_dropouts(p_x, p_h)
    return builder


def test_one_mask_per_sequence() -> None:
    """The same inputs are dropped at every step of a sequence, others in the next sequence."""
    builder = linear_rnn(0.5, 0.0)
    dy.renew_cg()
    seen = set()
    for _ in range(20):
        out = np.array(outputs(builder, [np.ones(IN)] * 3))
        steps = np.diff(np.vstack([np.zeros(IN), out]), axis=0)
        for column in steps.T:
            assert np.allclose(column, 0, atol=1e-6) or np.allclose(column, 0.02, rtol=1e-2)
        seen.add(tuple(out[0] > 0))
    assert len(seen) > 3


def test_rates() -> None:
    builder = linear_rnn(0.3, 0.0)
    dy.renew_cg()
    first = [builder.initial_state().add_input(dy.inputVector(np.ones(IN))).output() for _ in range(3000)]
    values = np.array([e.npvalue() for e in first])
    assert np.mean(values == 0) == pytest.approx(0.3, abs=0.02)
    assert values.mean() == pytest.approx(0.01, rel=0.05)  # 1 / (1 - p) keeps the mean


def test_previous_h() -> None:
    """d_r masks what a step sees of the previous h, not the output."""
    builder = linear_rnn(0.0, 0.5)
    dy.renew_cg()
    kept = []
    for _ in range(400):
        first, second = outputs(builder, [np.ones(IN), np.zeros(IN)])
        assert np.all(first > 0)
        kept.append(second / first)
    ratio = np.array(kept)
    assert np.all(np.isclose(ratio, 0, atol=1e-6) | np.isclose(ratio, 2, rtol=1e-2))
    assert np.mean(ratio > 1) == pytest.approx(0.5, abs=0.05)


def test_batch_elements_have_masks_of_their_own() -> None:
    builder = linear_rnn(0.5, 0.0)
    dy.renew_cg()
    (out,) = outputs(builder, [np.ones((IN, 500))])
    assert out.shape == (IN, 500)
    assert np.mean(out == 0) == pytest.approx(0.5, abs=0.05)
    assert len({tuple(c) for c in (out == 0).T}) > 5


def test_set_dropout_masks() -> None:
    """Masks of batch size 1 are common to all elements of a mini-batch."""
    builder = linear_rnn(0.5, 0.0)
    dy.renew_cg()
    for _ in range(5):
        state = builder.initial_state()
        builder.set_dropout_masks(batch_size=1)
        out = state.add_input(dy.inputTensor(np.ones((IN, 50)), batched=True)).output().npvalue()
        assert np.all((out == 0) == (out[:, :1] == 0))
    dy.SimpleRNNBuilder(1, 2, 2, dy.ParameterCollection()).set_dropout_masks()  # before a sequence: nothing to do


@pytest.mark.parametrize("make", [*VARIATIONAL, dy.CoupledLSTMBuilder, dy.FastLSTMBuilder])
def test_masks_before_the_first_sequence_of_a_graph(make: type) -> None:
    """They are for no sequence of the graph before, even if that is still there."""
    builder = make(1, IN, HIDDEN, dy.ParameterCollection())
    builder.set_dropout(0.5)
    if isinstance(builder, dy.CompactVanillaLSTMBuilder):
        builder.set_weightnoise(0.1)
    dy.renew_cg()
    old = builder.initial_state()
    state = old.add_input(dy.inputVector(np.ones(IN)))
    dy.renew_cg()
    builder.set_dropout_masks(1)
    assert len(dy.cg()) == 0
    for stale in (old, state):
        with pytest.raises(dy.StaleExpressionError):
            stale.add_input(dy.inputVector(np.ones(IN)))
    assert np.isfinite(builder.initial_state().add_input(dy.inputVector(np.ones(IN))).output().npvalue()).all()


def test_masks_after_each_revert() -> None:
    """The sequence that was started before the mark is still the last one."""
    builder = linear_rnn(0.5, 0.0)
    dy.renew_cg()
    state = builder.initial_state()
    seen = set()
    for _ in range(5):
        dy.cg_checkpoint()
        builder.set_dropout_masks(1)
        seen.add(tuple(state.add_input(dy.inputVector(np.ones(IN))).output().npvalue()))
        dy.cg_revert()
    assert len(seen) == 5


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("make", [*VARIATIONAL, *SINGLE_RATE])
def test_on_and_off(make: type, layers: int) -> None:
    """Random while on, as without dropout when disabled; gradients flow while on; batched values stay finite."""
    model = dy.ParameterCollection()
    builder = make(layers, IN, HIDDEN, model)
    xs = [np.random.default_rng(1).standard_normal((IN, 3)) for _ in range(3)]
    dy.renew_cg()
    plain = outputs(builder, xs)
    builder.set_dropout(0.4)
    first, second = outputs(builder, xs), outputs(builder, xs)
    assert not np.allclose(first[-1], second[-1])
    assert np.isfinite(first[-1]).all()
    es = [dy.inputTensor(x, batched=True) for x in xs]
    states = builder.initial_state().add_inputs(es)
    assert states[-1].output().dim() == ((HIDDEN,), 3)
    dy.sum_batches(dy.sum_elems(states[-1].output())).backward()
    assert any(p.grad_as_array().any() for p in model.parameters_list())
    builder.disable_dropout()
    np.testing.assert_allclose(outputs(builder, xs), plain, rtol=1e-6)


@pytest.mark.parametrize("make", [*VARIATIONAL, *SINGLE_RATE])
def test_a_graph_computed_again_draws_again(make: type) -> None:
    builder = make(1, IN, 40, dy.ParameterCollection())
    builder.set_dropout(0.5)
    dy.renew_cg()
    out = builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 2)[-1]
    assert not np.allclose(out.npvalue(), out.npvalue(recalculate=True))


def test_gru_drops_anew_at_each_step() -> None:
    builder = dy.GRUBuilder(1, IN, 100, dy.ParameterCollection())
    builder.set_dropout(0.5)
    dy.renew_cg()
    states = builder.initial_state().add_inputs([dy.inputVector(np.ones(IN))] * 2)
    dropped = [s.output().npvalue() == 0 for s in states]
    assert 20 < dropped[0].sum() < 80
    assert (dropped[0] != dropped[1]).any()
    assert not (states[0].h()[0].npvalue() == 0).any()  # the state itself is whole
    assert states[0].output() is states[0].output()


@pytest.mark.parametrize("make", [dy.GRUBuilder, dy.CoupledLSTMBuilder])
def test_states_that_started_without_dropout(make: type) -> None:
    """Their dropout is that of the start, not the variational one of builders whose first input decides."""
    builder = make(2, IN, HIDDEN, dy.ParameterCollection())
    xs = [np.ones(IN)] * 3
    dy.renew_cg()
    plain = outputs(builder, xs)
    for how in ("add_input", "add_inputs", "transduce"):
        es = [dy.inputVector(x) for x in xs]
        builder.disable_dropout()
        state = builder.initial_state()
        builder.set_dropout(0.5)
        if make is dy.CoupledLSTMBuilder:
            builder.set_dropout_masks(1)
        first = state.add_input(es[0]).output() if how == "add_input" else getattr(state, how)(es)[0]
        np.testing.assert_allclose((first.output() if how == "add_inputs" else first).npvalue(), plain[0], rtol=1e-6)
        np.testing.assert_allclose(state.transduce(es)[-1].npvalue(), plain[-1], rtol=1e-6)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize("make", [*VARIATIONAL, *SINGLE_RATE])
def test_bad_rates(make: type, rate: float) -> None:
    builder = make(1, 2, 2, dy.ParameterCollection())
    with pytest.raises(ValueError, match="set_dropout"):
        builder.set_dropout(rate)


def test_no_variational_methods() -> None:
    for make in SINGLE_RATE:
        builder = make(1, 2, 2, dy.ParameterCollection())
        with pytest.raises(AttributeError):
            builder.set_dropouts(0.1, 0.1)


def test_weight_noise() -> None:
    model = dy.ParameterCollection()
    builder = dy.CompactVanillaLSTMBuilder(1, IN, HIDDEN, model)
    xs = [np.ones(IN)] * 3
    dy.renew_cg()
    plain = outputs(builder, xs)[-1]
    builder.set_weightnoise(0.05)
    noisy = np.array([outputs(builder, xs)[-1] for _ in range(300)])
    assert noisy.std(axis=0).min() > 1e-3
    np.testing.assert_allclose(noisy.mean(axis=0), plain, atol=0.02)
    dy.renew_cg()
    builder.set_dropouts(0.2, 0.2)
    loss = dy.squared_norm(builder.initial_state().transduce([dy.inputVector(x) for x in xs])[-1])
    loss.backward()
    assert all(p.grad_as_array().any() for p in model.parameters_list())
    builder.disable_dropout()
    builder.set_weightnoise(0)
    np.testing.assert_allclose(outputs(builder, xs)[-1], plain, rtol=1e-6)
    for wrong in ("0.1", None):
        with pytest.raises(TypeError, match="a standard deviation must be a number|not 'NoneType'"):
            builder.set_weightnoise(wrong)


def test_weight_noise_in_what_was_recorded() -> None:
    builder = dy.CompactVanillaLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection())
    last = dy.compile(lambda x: builder.initial_state().transduce([x, x])[-1])
    plain = last(np.ones(IN))
    np.testing.assert_array_equal(last(np.ones(IN)), plain)
    builder.set_weightnoise(0.5)
    assert (last(np.ones(IN)) != plain).any() and (last(np.ones(IN)) != last(np.ones(IN))).any()
    builder.set_weightnoise(0)
    np.testing.assert_array_equal(last(np.ones(IN)), plain)
    with pytest.raises(ValueError, match="set_weightnoise"):
        builder.set_weightnoise(-1)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_weight_dropout_is_one_draw_for_a_graph(layer_norm: bool) -> None:
    """The same weights are dropped at each step of all sequences of a graph, others in the next one."""
    model = dy.ParameterCollection()
    builder = dy.VanillaLSTMBuilder(2, IN, HIDDEN, model, layer_norm)
    xs = [np.ones(IN)] * 4
    dy.renew_cg()
    plain = outputs(builder, xs)
    builder.set_weight_dropout(0.5)
    seen = set()
    for _ in range(10):
        dy.renew_cg()
        first, second = outputs(builder, xs), outputs(builder, xs)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first[0], plain[0], rtol=1e-6)  # there is no previous h to weigh
        seen.add(tuple(first[-1]))
    assert len(seen) == 10
    builder.set_dropout(0.0)  # of inputs and states
    dy.renew_cg()
    assert not np.allclose(outputs(builder, xs)[-1], plain[-1])
    builder.set_weight_dropout(0.0)
    dy.renew_cg()
    np.testing.assert_allclose(outputs(builder, xs), plain, rtol=1e-6)


def test_disable_dropout_is_of_weights_too() -> None:
    model = dy.ParameterCollection()
    alone, both = dy.LSTMBuilder(1, IN, HIDDEN, model), dy.BiRNNBuilder(1, IN, 2 * HIDDEN, model, dy.LSTMBuilder)
    tree = dy.UnidirectionalTreeLSTMBuilder(1, IN, IN, model)
    xs = [np.ones(IN)] * 4

    def now() -> list[np.ndarray]:
        dy.renew_cg()
        found = [alone.initial_state().transduce(xs)[-1], both.transduce(xs)[0], tree.node(xs[0], xs[1:])]
        return [e.npvalue() for e in found]

    plain = now()
    for builder in (alone, both.builder_layers[0][1], tree._builders[0]):
        builder.set_weight_dropout(0.5)
    assert not any(np.allclose(a, b) for a, b in zip(now(), plain, strict=True))
    for builder in (alone, both, tree):
        builder.disable_dropout()
    for a, b in zip(now(), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_weight_dropout_of_the_weights_after_an_update(layer_norm: bool) -> None:
    model = dy.ParameterCollection()
    builder = dy.VanillaLSTMBuilder(1, IN, HIDDEN, model, layer_norm)
    builder.set_weight_dropout(0.5)
    trainer = dy.SimpleSGDTrainer(model)
    dy.renew_cg()
    outputs(builder, [np.ones(IN)] * 3)
    wh = builder.get_parameters()[0][1]
    wh.set_grad(100 * np.ones(wh.shape()))
    trainer.set_clip_threshold(0)
    trainer.update()
    builder.initial_state()
    dropped = builder.get_parameter_expressions()[0][1].npvalue()
    kept = dropped != 0
    assert kept.any() and not kept.all()
    np.testing.assert_allclose(dropped[kept], 2 * wh.as_array()[kept], rtol=1e-6)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_weight_dropout_in_what_was_recorded(layer_norm: bool) -> None:
    """One draw for a compiled function, which is a whole graph; a cell is a part of one, and would draw for each call."""
    builder = dy.VanillaLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection(), layer_norm)

    def last(x: Any) -> Any:
        return builder.initial_state().transduce([x, x])[-1]

    cell, twice = dy.cell(last), dy.compile(lambda x: (last(x), last(x)))
    x = dy.inputVector(np.ones(IN))
    plain = cell(x).npvalue()
    builder.set_weight_dropout(0.5)
    with pytest.raises(dy.errors.CellError, match="set_weight_dropout.*whole graph"):
        cell(x)
    with dy.configure(cells="inline"):
        np.testing.assert_array_equal(cell(x).npvalue(), last(x).npvalue())
    np.testing.assert_array_equal(*twice(np.ones(IN)))
    builder.set_weight_dropout(0.0)
    np.testing.assert_array_equal(cell(x).npvalue(), plain)


def test_weight_dropout_drops_gradients() -> None:
    """What is dropped gets no gradient, and that at the given rate; the input weights are left alone."""
    model = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, IN, 30, model)
    builder.set_weight_dropout(0.3)
    wx, wh, _ = builder.get_parameters()[0]
    dy.renew_cg()
    states = builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 3)
    dy.squared_norm(states[-1]).backward()
    assert np.mean(wh.grad_as_array() == 0) == pytest.approx(0.3, abs=0.04)
    assert (wx.grad_as_array() != 0).all()


def test_weight_dropout_with_masks_and_sparse_weights() -> None:
    for make in (dy.LSTMBuilder, dy.SparseLSTMBuilder, dy.CompactVanillaLSTMBuilder):
        model = dy.ParameterCollection()
        builder = make(1, IN, HIDDEN, model)
        builder.set_dropouts(0.2, 0.2)
        builder.set_weight_dropout(0.2)
        dy.renew_cg()
        out = builder.initial_state().transduce([dy.inputVector(np.ones(IN))] * 3)[-1]
        dy.squared_norm(out).backward()
        assert np.isfinite(out.npvalue()).all() and builder.get_parameters()[0][1].grad_as_array().any()
        with pytest.raises(ValueError, match=r"set_weight_dropout.*got 1"):
            builder.set_weight_dropout(1.0)


def test_weight_dropout_survives_a_copy() -> None:
    model = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, IN, HIDDEN, model)
    builder.set_weight_dropout(0.5)
    dy.renew_cg()
    outputs(builder, [np.ones(IN)] * 2)
    twin = copy.deepcopy((model, builder))[1]
    dy.renew_cg()
    first = outputs(twin, [np.ones(IN)] * 3)
    dy.renew_cg()
    assert not np.array_equal(first[-1], outputs(twin, [np.ones(IN)] * 3)[-1])


def test_masks_are_of_the_sequence_of_this_thread() -> None:
    """set_dropout_masks() is about the sequence that the same thread has started last."""
    builder = dy.VanillaLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection())
    builder.set_dropout(0.5)
    dy.renew_cg()
    with ThreadPoolExecutor(1) as other:
        there = other.submit(builder.initial_state).result()
        here = builder.initial_state()
        other.submit(builder.set_dropout_masks, 3).result()
        assert here.add_input(np.ones(IN)).output().dim()[1] == 1
        assert other.submit(lambda: there.add_input(np.ones(IN)).output().dim()[1]).result() == 3


def test_layers_apart_are_made_once_in_a_graph() -> None:
    gru = dy.GRUBuilder(2, 3, 3, dy.ParameterCollection())
    gru.set_dropout(0.5)
    dy.renew_cg()
    layers = [gru._sequence(True).layers for _ in range(2)]
    assert layers[0] is layers[1]
    dy.renew_cg()
    assert gru._sequence(True).layers is not layers[0]
