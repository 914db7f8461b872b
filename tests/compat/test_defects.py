"""Where DyNet gives wrong numbers: the right ones, from formulas, each with what DyNet does."""

from __future__ import annotations

import numpy as np
import pytest

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
