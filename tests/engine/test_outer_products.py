"""Gradients that are left as outer products: the same bits as when they are formed, and formed for whoever looks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

ELEMENTWISE = ["SimpleSGDTrainer", "CyclicalSGDTrainer", "MomentumSGDTrainer", "AdagradTrainer", "AdadeltaTrainer",
               "RMSPropTrainer", "AdamTrainer", "AdamWTrainer", "AmsgradTrainer"]  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with dy.configure(threads=1):
        yield


class Net:
    """Two layers, the second with a matrix that meets one vector, too."""

    def __init__(self, least: int = 1) -> None:
        _core.settings.least_outer = least
        dy.reset_random_seed(1)
        self.m = dy.ParameterCollection()
        self.W, self.V = self.m.add_parameters((13, 20)), self.m.add_parameters((5, 13))
        self.b = self.m.add_parameters(13)

    def hidden(self, x: np.ndarray) -> dy.Expression:
        return dy.tanh(dy.affine_transform([self.b, self.W, dy.inputTensor(x)]))

    def loss(self, x: np.ndarray) -> dy.Expression:
        return dy.pickneglogsoftmax(self.V * self.hidden(x), 3)

    def weights(self) -> list[np.ndarray]:
        return [p.as_array() for p in self.m.parameters_list()]


def inputs(n: int) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    return [rng.randn(20) for _ in range(n)]


def trained(name: str, least: int, clip: float, decay: float) -> list[np.ndarray]:
    net = Net(least)
    net.m.set_weight_decay(decay)
    trainer = getattr(dy, name)(net.m)
    trainer.set_clip_threshold(clip)
    for x in inputs(6):
        dy.renew_cg()
        net.loss(x).backward()
        assert _core._is_outer(net.W) == _core._is_outer(net.V) == (least == 1)
        assert not _core._is_outer(net.b)
        trainer.update()
        assert not _core._is_outer(net.W)
    return net.weights()


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_updates_have_the_same_bits(name: str, decay: float) -> None:
    for a, b in zip(trained(name, 1, 0, decay), trained(name, 1 << 60, 0, decay), strict=True):
        assert a.tobytes() == b.tobytes()


def test_clipping_by_the_norm_of_the_two_vectors() -> None:
    for clip in (0.05, 5.0):
        for a, b in zip(
            trained("SimpleSGDTrainer", 1, clip, 0), trained("SimpleSGDTrainer", 1 << 60, clip, 0), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_norm_that_is_no_number() -> None:
    net = Net()
    trainer = dy.SimpleSGDTrainer(net.m)
    before = net.weights()
    dy.renew_cg()
    (net.loss(inputs(1)[0]) * 1e30 * 1e30).backward()
    with pytest.raises(RuntimeError, match="Magnitude of gradient is bad"):
        trainer.update()
    assert not _core._is_outer(net.W) and not net.W.grad_as_array().any()
    for a, b in zip(net.weights(), before, strict=True):
        assert np.array_equal(a, b)


def test_exponentiated_gradients_and_threads_need_them_formed() -> None:
    def weights(least: int, threads: int, kind: str) -> list[np.ndarray]:
        net = Net(least)
        for p in net.m.parameters_list():
            p.set_value(np.abs(p.as_array()) + 0.1)
        trainer = getattr(dy, kind)(net.m)
        for x in inputs(4):
            dy.renew_cg()
            net.loss(x).backward()
            with dy.configure(threads=threads):
                trainer.update()
        return net.weights()

    for kind, threads in (("EGTrainer", 1), ("SimpleSGDTrainer", 2)):
        for a, b in zip(weights(1, threads, kind), weights(1 << 60, threads, kind), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_whoever_looks_sees_the_gradient() -> None:
    x = inputs(1)[0]
    want = {}
    for least in (1 << 60, 1):
        net = Net(least)
        dy.renew_cg()
        loss = net.loss(x)
        loss.backward()
        got = {"array": net.W.grad_as_array().copy()}
        assert not _core._is_outer(net.W)
        dy.renew_cg()
        dy.SimpleSGDTrainer(net.m, 0.0).update()
        dy.renew_cg()
        W = dy.parameter(net.W)
        dy.pickneglogsoftmax(net.V * dy.tanh(W * dy.inputTensor(x)), 3).backward()
        got["of the expression"] = W.gradient()
        assert not _core._is_outer(net.W)
        net.W.scale_gradient(0.5)
        got["scaled"] = net.W.grad_as_array().copy()
        for name, value in got.items():
            if least == 1:
                assert np.array_equal(value, want[name]), name
        want = got


def test_passes_add_up() -> None:
    a, b = inputs(2)
    sums = []
    for least in (1, 1 << 60):
        net = Net(least)
        for x in (a, b):
            dy.renew_cg()
            net.loss(x).backward()
        sums.append(net.W.grad_as_array().copy())
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-6, atol=1e-8)


def test_what_more_than_one_node_or_vector_has_met_is_formed() -> None:
    net = Net()
    a, b = inputs(2)
    cases = {
        "two vectors": lambda: net.loss(a) + net.loss(b),
        "another reader": lambda: net.loss(a) + dy.squared_norm(dy.parameter(net.W)) + dy.squared_norm(dy.parameter(net.V)),
        "a part": lambda: net.loss(a) + dy.sum_elems(dy.pick_range(dy.parameter(net.W), 0, 3))
        + dy.sum_elems(dy.reshape(dy.parameter(net.V), (65,))),
    }  # fmt: skip
    for name, loss in cases.items():
        found = []
        for least in (1, 1 << 60):
            _core.settings.least_outer = least
            for p in net.m.parameters_list():
                p.zero()
            net.m.parameters_list()[0].set_value(np.full((13, 20), 0.1))
            dy.renew_cg()
            dy.SimpleSGDTrainer(net.m, 0.0).update()
            loss().backward()
            assert not _core._is_outer(net.W), name
            found.append(net.W.grad_as_array().copy())
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8, err_msg=name)
