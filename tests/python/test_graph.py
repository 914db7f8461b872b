"""Graphs from Python: renewal, blocks, threads, forks, lists of expressions, dumps, counters; and Tensor."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import holds_in_fork
from programs import run_code

import dynet_lite as dy


def test_renewal_and_versions() -> None:
    g = dy.renew_cg()
    assert g is dy.cg()
    version = dy.cg_version()
    x = dy.inputVector([1.0, 2.0])
    dy.renew_cg()
    assert dy.cg_version() != version
    for use in (x.value, x.dim, lambda: dy.tanh(x), lambda: x + 1, lambda: dy.esum([x]), lambda: dy.forward([x])):
        with pytest.raises(dy.StaleExpressionError):
            use()
    dy.renew_cg(autobatching=False)
    dy.esum([dy.tanh(dy.inputVector([1.0])) for _ in range(4)]).forward()
    assert dy.stats()["batches"] == 5


def test_blocks() -> None:
    dy.renew_cg()
    outer = dy.inputVector([1.0])
    with dy.graph() as g:
        assert dy.cg() is g and len(g) == 0
        inner = dy.inputVector([2.0])
        with pytest.raises(dy.StaleExpressionError, match="another graph"):
            dy.tanh(outer)
        with dy.graph(autobatching=False):
            assert dy.inputVector([3.0]).value() == 3
        assert (inner + 1).value() == 3
    assert dy.cg() is not g and (outer * 2).value() == 2
    with pytest.raises(ZeroDivisionError), dy.graph():
        raise ZeroDivisionError
    assert (outer * 3).value() == 3


def test_a_dropped_graph_is_gone() -> None:
    """Weights, tables and builders that were used in it do not keep it, and are used elsewhere as if nothing had been."""
    pc = dy.ParameterCollection()
    w, table = pc.parameters_from_numpy(np.eye(3)), pc.lookup_parameters_from_numpy(np.ones((4, 3)))
    lstm, tree = dy.LSTMBuilder(1, 3, 3, pc), dy.ChildSumTreeLSTMBuilder(1, 3, 3, pc)
    with dy.graph() as graph:
        xs = [w * table[0], table * dy.inputVector([1.0] * 4), *lstm.initial_state().transduce([table[1]])]
        state = lstm.initial_state()
        xs.append(state.add_input(table[3]).output())
        loss = dy.sum_elems(dy.esum([*xs, tree.node(table[2]).h()[-1]]))
        loss.backward()
    gone = weakref.ref(graph, lambda _: w.set_value(np.eye(3)))  # comes while the graph goes
    assert loss.value() == loss.npvalue()[0], "an expression keeps its graph"
    w.set_value(2 * np.eye(3))
    assert loss.value() == pytest.approx(loss.npvalue()[0])
    del graph, loss, xs
    assert gone() is None
    w.set_value(np.eye(3))
    table.zero()
    with pytest.raises(dy.StaleExpressionError):
        state.add_input(dy.inputVector([1.0] * 3))
    assert (w * table[0]).value() == [0.0] * 3 and w.dim() == ((3, 3), 1) and table.dim() == ((3, 4), 1)
    assert len(lstm.initial_state().transduce([table[1]])) == 1
    np.testing.assert_array_equal(w.npvalue(), np.eye(3))


def test_a_changed_weight_in_a_graph_that_was_left() -> None:
    """set_value() makes the expressions of the graph that the weight entered last run again, whichever is current."""
    pc = dy.ParameterCollection()
    w, table = pc.parameters_from_numpy(np.ones(2)), pc.lookup_parameters_from_numpy(np.ones((3, 2)))
    with dy.graph():
        total, row = dy.sum_elems(w), dy.sum_elems(table[1])
        assert (total.value(), row.value()) == (2.0, 2.0)
    w.set_value(np.full(2, 3.0))
    table.init_row(1, [4.0, 5.0])
    assert (total.value(), row.value()) == (6.0, 9.0)


@pytest.mark.parametrize("how", ["block", "thread"])
def test_weights_that_were_in_another_graph_meanwhile(how: str) -> None:
    """They are the node that they were: its uses run as one batch, and its gradient is that of all of them."""
    m = dy.ParameterCollection()
    W, E = m.parameters_from_numpy(np.eye(3)), m.lookup_parameters_from_numpy(np.eye(3))

    def beside() -> None:
        with dy.graph():
            assert np.isfinite((W * E[1] + E * E[2]).npvalue()).all()

    def elsewhere() -> None:
        if how == "block":
            return beside()
        thread = threading.Thread(target=beside)
        thread.start()
        return thread.join()

    dy.renew_cg()
    terms = []
    for k in range(3):
        terms += [W * dy.inputVector([1.0, 2.0, 3.0 + k]), E * dy.inputVector([1.0, 2.0, 3.0 + k]), E[k]]
        elsewhere()
    loss = dy.sum_elems(dy.esum(terms))
    loss.forward()
    assert dy.stats()["batches"] == 4  # two products, two sums
    loss.backward()
    elsewhere()
    np.testing.assert_array_equal(W.gradient(), [[3, 6, 12]] * 3)
    np.testing.assert_array_equal(W.gradient(), W.grad_as_array())
    np.testing.assert_array_equal(E.gradient(), [[3, 6, 12]] * 3)
    W.set_updated(False)
    again = dy.sum_elems(W * dy.inputVector([1.0, 2.0, 3.0]) + terms[0])
    elsewhere()
    assert dy.sum_elems(W).value() == 3
    again.backward()
    np.testing.assert_array_equal(W.grad_as_array(), np.array([[4, 8, 15]] * 3))


def test_validity_and_immediate_mode() -> None:
    dy.renew_cg(check_validity=True, immediate_compute=True)
    x = dy.inputVector([-1.0, 1.0])
    with pytest.raises(RuntimeError, match=r"\[log.*test_graph.py:\d+"):
        dy.log(x)
    dy.renew_cg(check_validity=True)
    y = dy.log(dy.inputVector([-1.0]))
    with pytest.raises(dy.NotFiniteError, match=r"test_graph.py:\d+"):
        y.value()
    dy.renew_cg()
    assert np.isnan(dy.log(dy.inputVector([-1.0])).value())


def test_lists() -> None:
    dy.renew_cg()
    x = [dy.inputVector([float(i), 1.0]) for i in range(3)]
    y = [dy.tanh(v) for v in x]
    dy.forward(y)
    assert dy.values(tuple(x)) == [[0, 1], [1, 1], [2, 1]]
    np.testing.assert_allclose(dy.npvalues(iter(y)), np.tanh([[0, 1], [1, 1], [2, 1]]), rtol=1e-6)
    assert dy.values([]) == [] and dy.forward([]) is None
    for bad in (x[0], [x[0], 1], 3):
        with pytest.raises(TypeError):
            dy.forward(bad)  # type: ignore[arg-type]
    x[0].set([5.0, 1.0])
    dy.forward(y, recalculate=True)
    assert y[0].value()[0] == pytest.approx(np.tanh(5.0))


def test_marks() -> None:
    dy.renew_cg()
    x = dy.inputVector([1.0])
    dy.cg_checkpoint()
    y = x + 1
    dy.cg_checkpoint()
    z = y + 1
    assert z.value() == 3
    dy.cg_revert()
    with pytest.raises(dy.StaleExpressionError):
        z.value()
    dy.cg_revert()
    with pytest.raises(dy.StaleExpressionError):
        y.value()
    dy.cg_revert()
    assert (x + 4).value() == 5


def test_reports(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dy.renew_cg()
    p = dy.ParameterCollection().add_parameters((2, 2), init=1)
    y = dy.sum_elems(dy.log(p * dy.inputVector([1.0, 0.5])))
    dy.print_text_graphviz()
    text = capfd.readouterr().err
    assert text.startswith("digraph G {") and text.rstrip().endswith("}") and "->" in text and "log" in text
    dy.dump_cg()
    assert "log {2}" in capfd.readouterr().err
    y.backward()
    dy.dump_cg(str(tmp_path / "dump"))
    assert "gradient" in (tmp_path / "dump").read_text()
    dy.dump_cg(str(tmp_path / "dump"), nan_check_only=True)
    assert (tmp_path / "dump").read_text() == ""
    dy.log(dy.inputVector([-1.0, 1.0]))
    dy.dump_cg(str(tmp_path / "dump"), nan_check_only=True)
    assert "nan" in (tmp_path / "dump").read_text()
    assert "log" in dy.plan_text()
    counters = dy.stats()
    assert counters["nodes"] >= 3 and counters["batches"] >= 1 and counters["heap_calls"] == dy.heap_calls()


def test_devices() -> None:
    dy.renew_cg()
    x = dy.inputVector([1.0])
    assert dy.available_devices() == ["CPU"] and dy.to_device(x, "CPU") is x
    assert dy.get_device_info("CPU").type == "CPU" and dy.HAVE_CUDA is False
    with pytest.raises(ValueError, match="CPU"):
        dy.to_device(x, "GPU:0")


def train(seed: int, steps: int = 15) -> list[float]:
    """The losses of a small training; its own collection and graph."""
    rng = np.random.default_rng(seed)
    m = dy.ParameterCollection()
    w = m.add_parameters((8, 8), init=rng.normal(size=(8, 8)) * 0.3)
    t = m.add_lookup_parameters((20, 8), init=rng.normal(size=(20, 8)))
    trainer = dy.AdamTrainer(m, 0.05)
    losses = []
    for _ in range(steps):
        with dy.graph():
            parts = [dy.squared_norm(dy.tanh(w * dy.tanh(w * t[int(i)]))) for i in rng.integers(20, size=12)]
            loss = dy.esum(parts)
            losses.append(loss.value())
            loss.backward()
            trainer.update()
    return losses


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_each_with_its_own_graph(workers: int) -> None:
    expected = [train(seed) for seed in range(6)]
    assert expected[0][-1] < expected[0][0]
    results: dict[int, Any] = {}

    def work(seed: int) -> None:
        try:
            results[seed] = train(seed)
        except BaseException as e:  # noqa: BLE001
            results[seed] = e

    with dy.configure(threads=workers):
        for _ in range(3):
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for seed in range(6):
                np.testing.assert_allclose(results[seed], expected[seed], rtol=1e-5)


def test_an_expression_of_another_thread() -> None:
    dy.renew_cg()
    x = dy.inputVector([1.0])
    errors: list[Any] = []

    def work() -> None:
        try:
            dy.tanh(x)
        except dy.StaleExpressionError as e:
            errors.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1


USED_BY_THE_LAST = """
import os, threading
import dynet_lite as dy

class Last:
    def __init__(self, number=dy.scalarInput):
        self.number = number
    def __del__(self):
        try:
            (self.number(2) * 3).value()
        except Exception:
            pass  # modules are going

def work():
    dy.scalarInput(1).value()
    here.last = Last()

here = threading.local()
for _ in range(20):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
dy.scalarInput(1).value()
os.last = Last()
print("done")
"""


def test_what_goes_after_the_graph_of_its_thread(tmp_path: Path) -> None:
    """It may use expressions as it goes: when a thread ends, and when the interpreter does."""
    done = run_code(USED_BY_THE_LAST, tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["done"]), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
@pytest.mark.parametrize("workers", [1, 2])
def test_fork_in_the_middle(workers: int) -> None:
    with dy.configure(threads=workers):
        expected = train(1)
        m = dy.ParameterCollection()
        p = m.add_parameters(3, init=1)
        trainer = dy.SimpleSGDTrainer(m, 0.5)
        dy.renew_cg()
        y = dy.sum_elems(dy.square(p))
        assert y.value() == 3

        def goes_on() -> bool:
            y.backward()
            trainer.update()
            return not p.as_array().any() and np.allclose(train(1), expected, rtol=1e-5)

        assert holds_in_fork(goes_on)
        assert (p.as_array() == 1).all()
        y.backward()
        trainer.update()
        assert not p.as_array().any()
        np.testing.assert_allclose(train(1), expected, rtol=1e-5)


def test_interrupt_in_training() -> None:
    """Ctrl-C between two calls leaves everything usable."""
    with pytest.raises(KeyboardInterrupt), dy.graph():
        dy.tanh(dy.inputVector([1.0]))
        raise KeyboardInterrupt
    dy.renew_cg()
    assert dy.tanh(dy.inputVector([0.0])).value() == 0


# ---- Tensor --------------------------------------------------------------------------------------------------------


def test_tensor_as_in_dynet() -> None:
    dy.renew_cg()
    a = np.array([[1.0, 5, 3], [4, 2, 9]])
    t = dy.inputTensor(a).tensor_value()
    np.testing.assert_array_equal(t.as_numpy(), a)
    assert t.argmax().as_numpy().tolist() == [[1, 0, 1]] and t.argmax(1).as_numpy().tolist() == [[1], [2]]
    assert t.argmax(1, 2).as_numpy().tolist() == [[1, 2], [2, 0]]  # DyNet aborts
    values, indices = t.topk(0, 2)
    assert values.as_numpy().tolist() == [[4, 5, 9], [1, 2, 3]] and indices.as_numpy().tolist() == [
        [1, 0, 1],
        [0, 1, 0],
    ]
    values, indices = t.topk(1, 2)
    assert values.as_numpy().tolist() == [[5, 3], [9, 4]] and indices.as_numpy().tolist() == [[1, 2], [2, 0]]
    assert t.dim() == ((2, 3), 1) and t.topk(1, 2)[0].dim() == ((2, 2), 1)
    v = dy.inputVector([1.0, 5, 3]).tensor_value()
    assert v.argmax().as_numpy().tolist() == [1] and v.topk(0, 2)[0].as_numpy().tolist() == [5, 3]
    b = dy.inputTensor(a, batched=True).tensor_value()
    assert b.as_numpy().shape == (2, 3) and b.argmax().as_numpy().tolist() == [[1, 0, 1]]
    cube = dy.inputTensor(np.random.default_rng(1).normal(size=(3, 4, 2, 5)), batched=True).tensor_value()
    for dim, num in [(0, 1), (0, 3), (1, 2), (2, 1)]:
        values, indices = cube.topk(dim, num)
        assert np.array_equal(values.as_numpy(), np.take_along_axis(cube.as_numpy(), indices.as_numpy(), axis=dim))
    for call in (lambda: b.argmax(1), lambda: v.topk(-1)):
        with pytest.raises(IndexError):
            call()
    for call in (lambda: v.topk(0, 4), lambda: v.argmax(0, 0), lambda: v.categorical_sample_log_prob(0, 0)):
        with pytest.raises(ValueError, match="num"):
            call()


def test_sampling() -> None:
    dy.renew_cg()
    p = np.array([0.1, 0.6, 0.3])
    t = dy.log(dy.inputVector(p)).tensor_value()
    draws = t.categorical_sample_log_prob(0, 4000).as_numpy()
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 4000, p, atol=0.04)
