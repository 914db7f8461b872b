"""Training against float64 NumPy: clipping, weight decay that rows owe until they are read, moving averages; a table is
updated in the rows that had a gradient, and all of its rows decay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

ROWS, N = 9, 3


class Reference:
    """A matrix W and a table T in NumPy, float64, every step on all rows."""

    def __init__(self, rule: str, values: dict[str, np.ndarray]) -> None:
        self.rule, self.w = rule, {k: v.astype(np.float64) for k, v in values.items()}
        self.state = {k: np.zeros_like(v) for k, v in self.w.items()}
        self.sums: list[dict[str, np.ndarray]] = []

    def update(self, grads: dict[str, np.ndarray], lr: float, decay: float, clip: float) -> None:
        norm = np.sqrt(sum(np.sum(g**2) for g in grads.values()))
        scale = clip / norm if 0 < clip < norm else 1.0
        for k, w in self.w.items():
            g = grads[k] * scale
            touched = np.ones(len(w), bool) if k == "W" else (grads[k] != 0).any(1)
            if self.rule == "sgd":
                w[touched] -= lr * g[touched]
            elif self.rule == "momentum":
                self.state[k][touched] = 0.9 * self.state[k][touched] - lr * g[touched]
                w[touched] += self.state[k][touched]
            else:
                self.state[k][touched] += g[touched] ** 2
                w[touched] -= lr * g[touched] / np.sqrt(self.state[k][touched] + 1e-20)
            w *= 1 - decay
        self.sums.append({k: w.copy() for k, w in self.w.items()})


TRAINERS = {"sgd": dy.SimpleSGDTrainer, "momentum": dy.MomentumSGDTrainer, "adagrad": dy.AdagradTrainer}


@pytest.mark.parametrize("average", ["exponential", "cumulative"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rule", TRAINERS)
def test_decay_clipping_and_averages(rule: str, threads: int, average: str) -> None:
    rng = np.random.default_rng([threads, len(rule)])
    values = {"W": rng.uniform(-1, 1, (4, N)), "T": rng.uniform(-1, 1, (ROWS, N))}
    m = dy.ParameterCollection()
    w, t = m.parameters_from_numpy(values["W"]), m.lookup_parameters_from_numpy(values["T"])
    trainer = TRAINERS[rule](m, 0.1)
    if average == "exponential":
        trainer.exponential_moving_average(0.8, 2)
    else:
        trainer.cumulative_moving_average()
    expected = Reference(rule, {k: v.astype(np.float32) for k, v in values.items()})
    with dy.configure(threads=threads):
        _core.settings.least_work = 0
        for k in range(15):
            decay, clip = (0.0, 0.01, 0.05)[k // 3 % 3], (5.0, 0.1, 0)[k % 3]
            m.set_weight_decay(decay)
            trainer.set_clip_threshold(clip)
            ids = rng.integers(0, ROWS, 2).tolist()
            grads = {"W": rng.normal(size=(4, N)), "T": np.zeros((ROWS, N))}
            dy.renew_cg()
            terms = [dy.sum_elems(dy.cmult(w, dy.inputTensor(grads["W"])))]
            for i in ids:
                g = rng.normal(size=N)
                grads["T"][i] += g
                terms.append(dy.dot_product(t[i], dy.inputVector(g)))
            dy.esum(terms).backward()
            trainer.update()
            expected.update(grads, 0.1, decay, clip)
            if k % 4 == 1:  # what is owed is paid when it is read
                i = int(rng.integers(ROWS))
                np.testing.assert_allclose(t.row_as_array(i), expected.w["T"][i], rtol=1e-4, atol=1e-6)
            if k == 9:
                np.testing.assert_allclose(t[0].npvalue(), expected.w["T"][0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(t.as_array(), expected.w["T"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(w.as_array(), expected.w["W"], rtol=1e-4, atol=1e-6)
        trainer.swap_params_to_moving_average()
        for p, k in ((w, "W"), (t, "T")):
            if average == "exponential":
                wanted = np.zeros_like(expected.w[k])
                for seen in expected.sums[::2]:
                    wanted = 0.8 * wanted + 0.2 * seen[k]
            else:
                wanted = np.mean([seen[k] for seen in expected.sums], axis=0)
            np.testing.assert_allclose(p.as_array(), wanted, rtol=1e-4, atol=1e-6)


# ---- gradients without end ------------------------------------------------------------------------------------------------


def one_step(scale: Any, clip: float, threads: int = 1, where: str = "W") -> tuple[Any, Any, Any]:
    """A step of SGD whose gradient of one row of W, or of T, is scale; the rest are ones."""
    m = dy.ParameterCollection()
    w, t = m.add_parameters((4, N), init=1), m.add_lookup_parameters((ROWS, N), init=1)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    trainer.set_clip_threshold(clip)
    g = np.ones((4, N))
    row = np.ones(N)
    if where == "W":
        g[2] = scale
    else:
        row[1] = scale
    with dy.configure(threads=threads):
        _core.settings.least_work = 0
        dy.renew_cg()
        (dy.sum_elems(dy.cmult(w, dy.inputTensor(g))) + dy.dot_product(t[3], dy.inputVector(row))).backward()
        trainer.update()
        _core.settle_steps()
    return w, t, trainer


@pytest.mark.parametrize("where", ["W", "T"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_gradient_that_is_not_finite(bad: float, threads: int, where: str) -> None:
    """With clipping nothing changes, and the next update works; without it, what it touches is lost, and nothing else."""
    m = dy.ParameterCollection()
    w, t = m.add_parameters((4, N), init=1), m.add_lookup_parameters((ROWS, N), init=1)
    trainer = dy.AdamTrainer(m, 0.5)
    with dy.configure(threads=threads):
        _core.settings.least_work = 0
        for scale in (bad, 1.0):
            dy.renew_cg()
            x = w if where == "W" else t[3]
            loss = dy.sum_elems(dy.cmult(x, dy.inputTensor(np.full(x.dim()[0], scale)))) + dy.sum_elems(t[4])
            loss.backward()
            if scale == 1.0:
                trainer.update()
                _core.settle_steps()
                continue
            with pytest.raises(RuntimeError, match="Magnitude of gradient is bad"):
                trainer.update()
                _core.settle_steps()
            assert (w.as_array() == 1).all() and (t.as_array() == 1).all()
            assert (w.grad_as_array() == 0).all() and (t.grad_as_array() == 0).all()
            assert trainer.updates == 0
    changed = w if where == "W" else t
    assert np.isfinite(w.as_array()).all() and np.isfinite(t.as_array()).all() and (changed.as_array() != 1).any()
    w, t, _ = one_step(bad, 0, threads, where)
    lost = ~np.isfinite(np.concatenate([w.as_array(), t.as_array()]))
    assert lost.sum() == (N if where == "W" else 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_clipping_of_gradients_whose_squares_do_not_fit(threads: int) -> None:
    """1e30 squared is not a float32; the norm is that of float64."""
    w, t, trainer = one_step(1e30, 2.0, threads)
    expected = np.ones((4, N))
    expected[2] -= 0.5 * 2.0 / np.sqrt(N)
    np.testing.assert_allclose(w.as_array(), expected, rtol=1e-5)
    np.testing.assert_allclose(t.as_array(), 1, rtol=1e-5)


def test_a_threshold_without_end() -> None:
    w, _, _ = one_step(3.0, np.inf)
    assert w.as_array()[2].tolist() == [-0.5] * N
