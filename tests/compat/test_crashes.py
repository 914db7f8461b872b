"""Where DyNet's process dies, or where it reads another node's memory: here an exception, and the next step works.

Also what DyNet's binding refuses though it makes sense. Wrong numbers are in test_defects.py.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import python

import dynet_lite as dy


@pytest.fixture(autouse=True)
def still_alive() -> Iterator[None]:
    """After each test the current graph and a new one work."""
    yield
    x = dy.inputVector([1.0, 2.0])
    assert dy.sum_elems(x).value() == 3
    dy.renew_cg()
    assert dy.sum_elems(dy.inputVector([1.0, 2.0])).value() == 3


# ---- expressions of an old graph ---------------------------------------------------------------------------------------

STALE: dict[str, Callable[[Any], Any]] = {
    "value": lambda e: e.value(),
    "npvalue": lambda e: e.npvalue(),
    "dim": lambda e: e.dim(),
    "forward": lambda e: e.forward(),
    "backward": lambda e: e.backward(),
    "gradient": lambda e: e.gradient(),
    "set": lambda e: e.set([1.0, 2.0]),
    "only operand": dy.tanh,
    "left operand": lambda e: e + dy.inputVector([1.0, 2.0]),
    "right operand": lambda e: dy.inputVector([1.0, 2.0]) + e,
    "with a number": lambda e: 2 * e,
    "index": lambda e: e[0],
    "pick": lambda e: dy.pick(e, 1),
    "in a list": lambda e: dy.esum([dy.inputVector([1.0, 2.0]), e]),
    "first in a list": lambda e: dy.concatenate([e, dy.inputVector([1.0, 2.0])]),
    "loss": lambda e: dy.pickneglogsoftmax(e, 0),
    "reshape": lambda e: dy.reshape(e, (1, 2)),
    "list of values": lambda e: dy.npvalues([e]),
}


@pytest.mark.parametrize("use", STALE)
@pytest.mark.parametrize("how", ["renewed", "reverted", "graph gone"])
def test_stale_expressions(use: str, how: str) -> None:
    """RuntimeError or ValueError in DyNet, or another node's value, or a segmentation fault: ours is both errors."""
    dy.renew_cg()
    if how == "graph gone":
        with dy.graph():
            e: Any = dy.inputVector([5.0, 6.0])
        gc.collect()
    else:
        dy.cg_checkpoint()
        e = dy.inputVector([5.0, 6.0])
        dy.renew_cg() if how == "renewed" else dy.cg_revert()
    other = dy.inputVector([7.0, 8.0])  # takes the old one's place
    if how == "graph gone" and use in (
        "value",
        "npvalue",
        "dim",
        "forward",
        "gradient",
        "backward",
        "set",
        "list of values",
    ):
        return  # the expression keeps its graph, which is not stale
    for error in (RuntimeError, ValueError):
        with pytest.raises(error):
            STALE[use](e)
    assert other.value() == [7, 8]


def test_stale_parts_of_builders() -> None:
    b = dy.VanillaLSTMBuilder(1, 2, 2, dy.ParameterCollection())
    state = b.initial_state().add_input(dy.inputVector([1.0, 2.0]))
    b.get_parameter_expressions()
    dy.renew_cg()
    for use in (
        b.get_parameter_expressions,
        lambda: state.add_input(dy.inputVector([1.0, 2.0])),
        lambda: dy.tanh(state.output()),
    ):
        with pytest.raises(ValueError):
            use()


# ---- the process dies in DyNet -----------------------------------------------------------------------------------------


def test_scalar_value_of_a_vector() -> None:
    with pytest.raises(ValueError, match="one number"):
        dy.inputVector([1.0, 2.0]).scalar_value()


def test_rows() -> None:
    p = dy.ParameterCollection().add_lookup_parameters((3, 2))
    before = p.as_array()
    for bad in (lambda: p.init_row(0, [1.0]), lambda: p.init_row(0, [1.0] * 3), lambda: p.init_row(3, [1.0, 2.0])):
        with pytest.raises(ValueError):
            bad()
    for bad in (
        lambda: p.row_as_array(3),
        lambda: p.rows_as_array([0, 3]),
        lambda: p.row_grad_as_array(3),
        lambda: p[3],
    ):
        with pytest.raises(IndexError):
            bad()
    np.testing.assert_array_equal(p.as_array(), before)


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(2)
    for save in (lambda f: m.save(f), lambda f: p.save(f), lambda f: dy.save(f, [p])):
        with pytest.raises(OSError):
            save(str(tmp_path / "none" / "file"))


def test_uniform_of_0() -> None:
    assert dy.ParameterCollection().add_parameters(2, init=dy.UniformInitializer(0)).as_array().tolist() == [0, 0]
    for bad in (-1, float("nan")):
        with pytest.raises(ValueError):
            dy.ParameterCollection().add_parameters(2, init=dy.UniformInitializer(bad))


def test_expressions_are_not_made_by_hand() -> None:
    for use in (lambda e: e.value(), lambda e: e.dim(), dy.tanh, lambda e: e + 1, repr, lambda e: e.npvalue()):
        try:
            use(dy.Expression())
        except (TypeError, RuntimeError, ValueError):
            pass


def test_tensor_argmax_of_several() -> None:
    t = dy.inputVector([1.0, 3.0, 2.0]).tensor_value()
    assert t.argmax(num=2).as_numpy().tolist() == [1, 2]
    with pytest.raises(ValueError):
        t.argmax(num=4)


def test_softmax_builder_before_any_graph() -> None:
    code = """
import dynet_lite as dy
s = dy.StandardSoftmaxBuilder(2, 3, dy.ParameterCollection())
print(round(s.neg_log_softmax(dy.inputVector([0, 0]), 1).value(), 4))
"""
    assert python("-c", code).stdout.strip() == "1.0986"


def test_marks_and_automatic_batching() -> None:
    dy.renew_cg(autobatching=True)
    w = dy.ParameterCollection().add_parameters((2, 2), init="identity")
    kept = [w * dy.inputVector([float(i), 1.0]) for i in range(3)]
    dy.cg_checkpoint()
    assert dy.esum([dy.tanh(e) for e in kept]).npvalue().shape == (2,)
    dropped = dy.tanh(kept[0])
    dy.cg_revert()
    loss = dy.sum_elems(dy.esum(kept))
    assert loss.value() == 6
    loss.backward()
    with pytest.raises(RuntimeError):
        dropped.value()


def test_a_trainer_outlives_its_collection() -> None:
    m = dy.ParameterCollection()
    w = m.add_parameters(2, init=1)
    trainer = dy.AdamTrainer(m)
    del m
    gc.collect()
    dy.squared_norm(w).backward()
    trainer.update()
    assert (w.as_array() < 1).all()


def test_parameters_outlive_their_collection() -> None:
    p = dy.ParameterCollection().add_lookup_parameters((3, 2), init=1)
    gc.collect()
    assert p[1].value() == [1, 1]


@pytest.mark.parametrize("shape", [(10**6, 10**6), (10**13,), (2**16, 2**16, 2**16)])
def test_very_large_tensors(shape: tuple[int, ...]) -> None:
    """Larger than the memory of any machine."""
    for make in (
        lambda: dy.zeros(shape),
        lambda: dy.random_normal(shape),
        lambda: dy.ParameterCollection().add_parameters(shape),
    ):
        with pytest.raises((ValueError, MemoryError, OverflowError, IndexError)):
            make().value()
    x, y = dy.zeros((2**20, 1)), dy.zeros((1, 2**20))
    with pytest.raises(ValueError):
        x * y


def test_a_failed_op_leaves_no_node() -> None:
    """DyNet keeps the half-made node, and a later evaluation may die of it."""
    x, y = dy.inputVector([1.0, 2.0]), dy.inputVector([1.0, 2.0, 3.0])
    before = len(dy.cg())
    for bad in (lambda: x + y, lambda: dy.dot_product(x, y), lambda: dy.pickneglogsoftmax(x, 2), lambda: dy.concatenate_cols([x, y]),
                lambda: dy.reshape(x, (3,)), lambda: dy.pick(x, 5), lambda: dy.affine_transform([x, y, x])):  # fmt: skip
        with pytest.raises(ValueError):
            bad()
    assert len(dy.cg()) == before
    assert dy.sum_elems(x).value() == 3


@pytest.mark.parametrize(
    "flags", ["--dynet-mem=x", "--dynet-seed=-1", "--dynet-autobatch two", "--dynet-weight-decay=2"]
)
def test_bad_flags(flags: str) -> None:
    code = """
import dynet_lite as dy
try:
    dy.renew_cg()
except ValueError as e:
    print("caught", e)
"""
    done = python("-c", code, *flags.split())
    assert done.returncode == 0 and "caught" in done.stdout and flags.replace("=", " ").split()[0] in done.stdout


def test_settings_and_flags_go_together() -> None:
    """In DyNet one call of dynet_config.set() makes it deaf to all flags."""
    code = "import dynet_lite as dy; dy.dynet_config.set(random_seed=3); print(dy.config.get('seed'), dy.config.get('weight_decay'))"
    assert python("-c", code, "--dynet-weight-decay=0.5", "--dynet-seed=9").stdout.split() == ["3", "0.5"]


# ---- what DyNet's binding refuses ------------------------------------------------------------------------------------------


def test_operators() -> None:
    x, y = dy.inputVector([1.0, 4.0]), dy.inputVector([2.0, 8.0])
    for given, wanted in (
        (x / y, [0.5, 0.5]), (1 - x, [0, -3]), (2 * x, [2, 8]), (2**x, [2, 16]), (8 / x, [8, 2]), (1 + x, [2, 5]),
        (x * np.float32(2), [2, 8]), (x + np.int64(1), [2, 5]), (x + np.array([1.0, 2.0]), [2, 6]),
        (np.array([1.0, 2.0]) + x, [2, 6]), (np.float64(3) - x, [2, -1]), (sum([x, y]), [3, 12]),
    ):  # fmt: skip
        assert isinstance(given, dy.Expression)
        np.testing.assert_allclose(given.npvalue(), wanted)


def test_indices() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    e = dy.inputTensor(a)
    for index in (0, -1, (0, 1), (slice(None), 2), (..., 1), (0, slice(1, 3)), (slice(None), -1, slice(None, None, 2)),
                  (0, ..., -1), ([1, 0],), slice(0, 1)):  # fmt: skip
        np.testing.assert_allclose(e[index].npvalue().squeeze(), np.squeeze(a[index]))
    for bad in (2, (0, 3), (slice(None), slice(None), 4), -3):
        with pytest.raises(IndexError):
            e[bad]


def test_stacked_states() -> None:
    """DyNet's constructor always raises."""
    m = dy.ParameterCollection()
    builders = [dy.GRUBuilder(1, 2, 2, m), dy.GRUBuilder(1, 2, 2, m)]
    state = dy.StackedRNNState([b.initial_state() for b in builders])
    state = state.add_input(dy.inputVector([1.0, 2.0]))
    x = builders[0].initial_state().add_input(dy.inputVector([1.0, 2.0])).output()
    np.testing.assert_allclose(state.output().npvalue(), builders[1].initial_state().add_input(x).output().npvalue())


def test_devices() -> None:
    """Text instead of bytes; a type that says something."""
    assert dy.available_devices() == ["CPU"]
    assert dy.get_device_info("CPU").type == "CPU"
    with pytest.raises(ValueError):
        dy.get_device_info("GPU:0")


def test_labels_are_checked_where_they_are_given() -> None:
    x = dy.inputVector([1.0, 2.0])
    m = dy.ParameterCollection()
    for bad in (lambda: dy.pickneglogsoftmax(x, 2), lambda: dy.hinge(x, -3), lambda: dy.pick(x, 2), lambda: dy.one_hot(2, 2),
                lambda: dy.pickneglogsoftmax_batch(dy.ones((2,), batch_size=2), [0, 2]), lambda: dy.select_rows(x, [2]),
                lambda: dy.lookup(m.add_lookup_parameters((2, 2)), 2), lambda: dy.pick_batch_elem(x, 1)):  # fmt: skip
        with pytest.raises(IndexError):
            bad()
