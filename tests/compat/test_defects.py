"""Where DyNet gives wrong numbers: the right ones, from formulas, each with what DyNet does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_dynet import python

import dynet_lite as dy

RNG = np.random.default_rng(3)


def close(given: object, wanted: object) -> None:
    np.testing.assert_allclose(np.asarray(given, dtype=float), wanted, rtol=1e-5, atol=1e-6)


def gradient(x: dy.Expression, loss: dy.Expression) -> np.ndarray:
    loss.backward(full=True)
    return x.gradient()


def test_poisson_loss_passes_the_gradient_on() -> None:
    """DyNet gives d/dl (e^l - k l) whatever comes in."""
    x = dy.inputVector([0.7])
    close(gradient(x, dy.poisson_loss(x, 3) * 5), [5 * (np.exp(0.7) - 3)])


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
def test_silu_with_beta(beta: float) -> None:
    """d/dx x s(bx) = s + b x s (1 - s); DyNet leaves out a factor when b is not 1."""
    a = RNG.standard_normal(5).astype(np.float32)
    x = dy.inputVector(a)
    s = 1 / (1 + np.exp(-beta * a.astype(float)))
    close(gradient(x, dy.sum_elems(dy.silu(x, beta))), s + beta * a * s * (1 - s))


@pytest.mark.parametrize("d", [0, 1])
def test_logsumexp_dim_of_tall_matrices(d: int) -> None:
    """DyNet's last rows are wrong when d=1, the matrix has more rows than columns."""
    a = RNG.standard_normal((6, 2, 3)).astype(np.float32)
    x = dy.inputTensor(a, batched=True)
    close(dy.logsumexp_dim(x, d).npvalue(), np.log(np.exp(a.astype(float)).sum(d)))
    close(
        gradient(x, dy.sum_batches(dy.sum_elems(dy.logsumexp_dim(x, d)))), np.exp(a) / np.exp(a).sum(d, keepdims=True)
    )


def test_contract3d_1d_starts_from_zero() -> None:
    """DyNet adds onto what was in memory; this one gave 10 there."""
    for _ in range(3):
        dy.renew_cg()
        x, y = dy.ones((2, 2, 3)), dy.ones((3,))
        close(dy.contract3d_1d(x, y).npvalue(), np.full((2, 2), 3.0))
    a, b = RNG.standard_normal((2, 3, 4)).astype(np.float32), RNG.standard_normal(4).astype(np.float32)
    close(dy.contract3d_1d(dy.inputTensor(a), dy.inputVector(b)).npvalue(), a @ b)


def test_binary_log_loss_has_a_gradient_for_the_target() -> None:
    """-(y log x + (1 - y) log(1 - x)): d/dy = log(1 - x) - log x; DyNet's has the wrong sign or scale."""
    a, b = np.array([0.2, 0.6]), np.array([0.3, 0.9])
    x, y = dy.inputVector(a), dy.inputVector(b)
    dy.binary_log_loss(x, y).backward(full=True)
    close(y.gradient(), np.log(1 - a) - np.log(a))
    close(x.gradient(), (1 - b) / (1 - a) - b / a)


def test_average_of_batched_and_unbatched() -> None:
    """An unbatched member gets the sum over the batch; DyNet's gradient is wrong."""
    a, b = RNG.standard_normal((3, 4)), RNG.standard_normal(3)
    x, y = dy.inputTensor(a, batched=True), dy.inputVector(b)
    e = dy.average([x, y])
    close(e.npvalue(), (a + b[:, None]) / 2)
    dy.sum_batches(dy.sum_elems(e)).backward(full=True)
    close(x.gradient(), np.full((3, 4), 0.5))
    close(y.gradient(), np.full(3, 2.0))


def test_l2_norm_at_zero() -> None:
    """The gradient is NaN in DyNet; 0 is a subgradient."""
    x = dy.zeros((3,))
    close(gradient(x, dy.l2_norm(x)), np.zeros(3))


@pytest.mark.parametrize("op", ["round", "ceil", "floor"])
@pytest.mark.parametrize(("mode", "wanted"), [("zero_gradient", 0.0), ("straight_through_gradient", 1.0)])
def test_gradient_modes_of_rounding(op: str, mode: str, wanted: float) -> None:
    """In DyNet the modes are swapped, or unset."""
    x = dy.inputVector([0.3, 1.7, -2.4])
    e = getattr(dy, op)(x, mode) if op == "round" else getattr(dy, op)(x, gradient_mode=mode)
    close(e.npvalue(), getattr(np, op)([0.3, 1.7, -2.4]))
    close(gradient(x, dy.sum_elems(e)), np.full(3, wanted))


@pytest.mark.parametrize("n", [1, 3, 8, 13, 64])
def test_round_of_halves_is_the_same_everywhere(n: int) -> None:
    """To the even neighbour; in DyNet so in blocks of eight, and away from zero in what is left."""
    a = np.resize([0.5, 1.5, 2.5, -0.5, -2.5], n)
    close(dy.round(dy.inputVector(a), "zero_gradient").npvalue(), np.round(a))


def test_one_hot_out_of_range() -> None:
    """DyNet gives zeros."""
    with pytest.raises((IndexError, ValueError)):
        dy.one_hot(3, 3)


@pytest.mark.parametrize("op", ["dropout", "dropout_batch", "block_dropout"])
@pytest.mark.parametrize("p", [1.5, -0.1, float("nan")])
def test_dropout_rates_that_make_no_sense(op: str, p: float) -> None:
    """DyNet takes any p and gives NaN or nonsense."""
    with pytest.raises(ValueError, match="p"):
        getattr(dy, op)(dy.ones((3,)), p)


def test_masked_scores_make_no_nan() -> None:
    """-inf and -1e9 as masks, through log_softmax and the losses after them; parsers on DyNet die of the NaN."""
    x = dy.inputVector([0.3, 1.2, -0.7])
    masked = x + dy.inputVector([0.0, -np.inf, 0.0])
    for loss in (
        -dy.pick(dy.log_softmax(masked), 0), dy.pickneglogsoftmax(masked, 2), -dy.log(dy.pick(dy.softmax(masked), 0)),
        -dy.log_softmax(x, restrict=[0, 2])[0], -dy.pick(dy.log_softmax(x + dy.inputVector([0, -1e9, 0])), 0),
    ):  # fmt: skip
        assert np.isfinite(loss.value())
        g = gradient(x, loss)
        assert np.isfinite(g).all() and g[1] == 0


def test_lists_of_different_batches() -> None:
    """Batches 2 and 3 give garbage in DyNet."""
    x, y = dy.ones((2,), batch_size=2), dy.ones((2,), batch_size=3)
    w = dy.ones((2, 2), batch_size=2)
    for use in (lambda: dy.esum([x, y]), lambda: dy.average([x, y]), lambda: dy.concatenate([x, y]), lambda: w * y):
        with pytest.raises(ValueError, match="batch"):
            use()


# ---- wrong numbers of DyNet's automatic batching -----------------------------------------------------------------------

A = RNG.standard_normal((4, 3)).astype(np.float32)
COLLIDING = {
    "elu, alpha": [lambda x, k=k: dy.elu(x, k) for k in (0.5, 1.0, 2.0)] + [dy.rectify, dy.selu],
    "silu, beta": [lambda x, k=k: dy.silu(x, k) for k in (0.5, 1.0, 2.0)],
    "softmax, dim": [lambda x, d=d: dy.softmax(x, d) for d in (0, 1)],
    "transpose": [lambda x, d=d: dy.reshape(dy.transpose(dy.reshape(x, (2, 2, 3)), d), (4, 3))
                  for d in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0))],
    "rounding": [lambda x: dy.round(x, "zero_gradient"), dy.ceil, dy.floor],
    "pick_range": [lambda x, k=k: dy.pick_range(x, k, k + 2) for k in (0, 1, 2)],
    "pick, dim": [lambda x, d=d: dy.concatenate([dy.pick(x, 1, d)] * (3 if d else 4)) for d in (0, 1)],
    "constants": [lambda x, k=k: (k * x + k) - dy.pow(dy.square(x) + 1, dy.scalarInput(k)) for k in (1.0, 2.0)],
    "dropout": [lambda x, p=p: dy.dropout(x, p) * 0 for p in (0.1, 0.5)],
    "reshape": [lambda x, d=d: dy.concatenate([dy.reshape(x, d)[0]] * 12)[:3] for d in ((4, 3), (3, 4), (12,))],
}  # fmt: skip


@pytest.mark.parametrize("what", COLLIDING)
def test_signatures_do_not_collide(what: str) -> None:
    """DyNet's signature is a hash without these arguments; the second of them is given the first one's numbers."""
    results = []
    for autobatch in (False, True):
        dy.renew_cg(autobatching=autobatch)
        xs = [dy.inputTensor(A + i) for i in range(3)]
        es = [use(x) for x in xs for use in COLLIDING[what]]
        dy.forward(es)
        dy.esum([dy.sum_elems(dy.square(e)) for e in es]).backward(full=True)
        results.append([e.npvalue() for e in es] + [x.gradient() for x in xs])
    for alone, together in zip(*results, strict=True):
        close(together, alone)


# ---- other wrong numbers ------------------------------------------------------------------------------------------------


def test_full_logits_of_class_factors() -> None:
    """DyNet adds a probability to a logarithm."""
    words = {"a": 0, "b": 1, "c": 2}
    s = dy.ClassFactoredSoftmaxBuilder(2, ["X a", "X b", "Y c"], words, dy.ParameterCollection())
    x = dy.inputVector([1.0, -2.0])
    p = np.exp(-np.array([s.neg_log_softmax(x, k).value() for k in range(3)]))
    logits = s.full_logits(x).npvalue()
    close(np.exp(logits) / np.exp(logits).sum(), p)
    close(np.exp(s.full_log_distribution(x).npvalue()), p)


def test_logdet_of_a_negative_determinant() -> None:
    """NaN in DyNet, silently; the logarithm of abs(det), or an error, would both do."""
    a = np.array([[0.0, 1.0], [2.0, 0.0]])
    x = dy.inputTensor(a)
    e = dy.logdet(x)
    close(e.npvalue(), [np.log(2.0)])
    close(gradient(x, e), np.linalg.inv(a).T)


def test_weight_decay_is_in_every_value() -> None:
    """In DyNet as_array() leaves out the decay that is still owed: 1.0 for a value of 0.5."""
    m = dy.ParameterCollection()
    m.set_weight_decay(0.5)
    w, e = m.add_parameters(2, init=1), m.add_lookup_parameters((2, 2), init=1)
    trainer = dy.SimpleSGDTrainer(m)
    trainer.update()
    dy.renew_cg()
    for given in (w.as_array(), w.npvalue(), e.as_array(), e[0].npvalue(), e.row_as_array(1)):
        close(given, np.full(np.shape(given), 0.5))


def test_gradients_of_frozen_parameters_do_not_pile_up() -> None:
    """In DyNet they do, and the first update after set_updated(True) takes them all."""
    m = dy.ParameterCollection()
    w, v = m.add_parameters(2, init=1), m.add_parameters(2, init=1)
    trainer = dy.SimpleSGDTrainer(m, 0.1)
    w.set_updated(False)
    for _ in range(5):
        dy.renew_cg()
        dy.dot_product(w, v).backward()
        trainer.update()
    w.set_updated(True)
    trainer.update()
    close(w.as_array(), [1, 1])


def test_update_false_counts_for_its_call_alone() -> None:
    """In DyNet the first initial_state() of a graph decides for all."""
    m = dy.ParameterCollection()
    b = dy.VanillaLSTMBuilder(1, 2, 2, m)
    x = dy.inputVector([1.0, 2.0])
    first = b.initial_state(update=False).add_input(x).output()
    second = b.initial_state(update=True).add_input(x).output()
    dy.sum_elems(first).backward()
    assert not any(p.grad_as_array().any() for p in m.parameters_list())
    dy.sum_elems(second).backward()
    assert all(
        p.grad_as_array().any() for p in m.parameters_list() if p.shape() != (8, 2) or p is m.parameters_list()[0]
    )


def test_update_of_a_softmax_counts_for_its_call_alone() -> None:
    """In DyNet the third of these calls has no gradient, as if it were said of it as of the second."""
    m = dy.ParameterCollection()
    softmax = dy.StandardSoftmaxBuilder(2, 3, m)

    def gradients(*calls: tuple[int, bool]) -> list[np.ndarray]:
        dy.renew_cg()
        dy.esum([softmax.neg_log_softmax(dy.inputVector([1, 2]), c, update) for c, update in calls]).backward()
        found = [p.grad_as_array().copy() for p in m.parameters_list()]
        for p in m.parameters_list():
            p.scale_gradient(0)
        return found

    alone = zip(gradients((0, True)), gradients((2, True)), strict=True)
    for both, (first, third) in zip(gradients((0, True), (1, False), (2, True)), alone, strict=True):
        assert first.any() and third.any()
        close(both, first + third)


def test_layer_norm_weights_are_saved_with_their_builder(tmp_path: Path) -> None:
    """In DyNet they lie outside the builder's collection and are lost."""
    m = dy.ParameterCollection()
    b = dy.VanillaLSTMBuilder(1, 2, 3, m, ln_lstm=True)
    for p in m.parameters_list():
        p.set_value(RNG.standard_normal(p.shape()))
    assert len(b.param_collection().parameters_list()) == len(m.parameters_list())
    dy.save(tmp_path / "b", [b])
    (again,) = dy.load(tmp_path / "b", dy.ParameterCollection())
    xs = [dy.inputVector([1.0, 2.0]), dy.inputVector([0.5, -1.0])]
    close(again.initial_state().transduce(xs)[-1].npvalue(), b.initial_state().transduce(xs)[-1].npvalue())


def test_the_program_keeps_its_small_numbers() -> None:
    """DyNet's start-up code makes the processor flush denormal numbers, NumPy's too."""
    code = """
import numpy as np
import dynet_lite as dy
dy.tanh(dy.inputVector([1.0])).value()
print((np.array([5e-324]) * 1.0)[0] > 0 and np.float32(1e-40) * np.float32(1) > 0)
"""
    assert python("-c", code).stdout.strip() == "True"


def test_initializers_and_gumbel(tmp_path: Path) -> None:
    """DyNet's FromFileInitializer wants bytes, and a missing file passes silently; its gumbel takes its defaults only."""
    with pytest.raises((OSError, RuntimeError)):
        dy.ParameterCollection().add_parameters(2, init=dy.FromFileInitializer(str(tmp_path / "none")))
    (tmp_path / "two").write_text("1 2", encoding="utf-8")
    for name in (str(tmp_path / "two"), str(tmp_path / "two").encode()):
        close(dy.ParameterCollection().add_parameters(2, init=dy.FromFileInitializer(name)).as_array(), [1, 2])
    close(
        dy.ParameterCollection().add_lookup_parameters((2, 2), init=dy.NumpyInitializer(np.eye(2))).as_array(),
        np.eye(2),
    )
    drawn = dy.random_gumbel((4000,), 3.0, 2.0).npvalue()
    assert abs(drawn.mean() - (3 + 2 * 0.57722)) < 0.2


def test_numbers_that_a_float32_does_not_hold() -> None:
    """DyNet's x / 1e-40 is x times infinity, and its 1e40 / x is infinite. See also tests/engine/test_constants.py."""
    x = dy.inputVector([2.0, -1.0])
    close(((x * 1e-30) / 1e-40).npvalue() / 1e10, [2, -1])
    close((1e40 / (x * 1e30)).npvalue() / 1e10, [0.5, -1])


@pytest.mark.parametrize("kind", ["VanillaLSTMBuilder", "CompactVanillaLSTMBuilder", "CoupledLSTMBuilder"])
def test_set_h_keeps_the_cell_of_its_own_state(kind: str) -> None:
    """DyNet takes the cell of the newest state of the builder."""
    builder = getattr(dy, kind)(1, 2, 2, dy.ParameterCollection())
    x = dy.inputVector([0.5, -0.3])
    older = builder.initial_state().add_input(x)
    older.add_input(x)
    h = dy.inputVector([0.9, 0.8])
    c, shown = older.set_h([h]).s()
    np.testing.assert_array_equal(c.npvalue(), older.s()[0].npvalue())
    np.testing.assert_array_equal(shown.npvalue(), h.npvalue())


def test_tables_of_matrices_are_the_array_that_they_are_made_of() -> None:
    """DyNet mixes up the numbers of each row."""
    a = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    m = dy.ParameterCollection()
    for table in (m.add_lookup_parameters((2, 2, 3), init=a), m.lookup_parameters_from_numpy(a)):
        np.testing.assert_array_equal(table.as_array(), a)
        np.testing.assert_array_equal(table[1].npvalue(), a[1])
