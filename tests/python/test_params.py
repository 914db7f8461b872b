"""Collections: DyNet's names, lists and counts; life time and memory; pickling and copies."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from real_dynet import needs_dynet, python, run

import dynet_lite as dy

NAMING = """
m = dy.ParameterCollection()
names = [m.name()]
for name in ["x", "x", "", "x", ""]:
    names.append(m.add_parameters((2, 3), name=name).name())
names.append(m.add_lookup_parameters((4, 2)).name())
names.append(m.add_lookup_parameters(4, name="x").name())
s = [m.add_subcollection("s"), m.add_subcollection("s"), m.add_subcollection(), m.add_subcollection("x")]
names += [c.name() for c in s]
for c in s + [s[0].add_subcollection("deep"), s[0].add_subcollection()]:
    names += [c.name(), c.add_parameters(3).name(), c.add_lookup_parameters((2, 2), name="b").name()]
    names += [c.add_parameters(3, name="b").name()]
names.append(m.add_parameters(2, name="s").name())
names += [p.name() for p in m.parameters_list()] + [p.name() for p in m.lookup_parameters_list()]
names += [p.name() for p in s[0].parameters_list()] + [m.parameter_count(), s[0].parameter_count()]
out = names
"""


@needs_dynet
def test_names_lists_and_counts_are_dynets() -> None:
    space: dict[str, Any] = {"dy": dy}
    exec(NAMING, space)
    assert space["names"] == run(NAMING)


def test_names_may_hold_underscores_but_stay_unique() -> None:
    m = dy.ParameterCollection()
    names = [m.add_parameters(1, name=n).name() for n in ["_0", "", "x_1", "x", "x", "my_weight", "my_weight", "x"]]
    assert names == ["/_0", "/_1", "/x_1", "/x", "/x_2", "/my_weight", "/my_weight_1", "/x_3"]
    assert m.add_subcollection("a_b").name() == "/a_b/"


@pytest.mark.parametrize("bad", ["a/b", " ", "a ", " a", "a\nb", "a\tb"])
def test_bad_names(bad: str) -> None:
    m = dy.ParameterCollection()
    with pytest.raises(ValueError, match="name"):
        m.add_parameters(1, name=bad)
    with pytest.raises(ValueError, match="name"):
        m.add_subcollection(bad)
    assert m.parameters_list() == [] and m.add_parameters(1).name() == "/_0"


@pytest.mark.parametrize("bad", [-1, (2, -3), (1,) * 8, (), "ab", None, (2, "x")])
def test_bad_dims(bad: Any) -> None:
    m = dy.ParameterCollection()
    for add in (m.add_parameters, m.add_lookup_parameters):
        with pytest.raises((ValueError, TypeError)):
            add(bad)
    assert m.parameter_count() == 0 and m.add_parameters(1).name() == "/_0"


def test_bad_arguments() -> None:
    m = dy.ParameterCollection()
    with pytest.raises(ValueError, match="no such device.*GPU:0"):
        m.add_parameters(2, device="GPU:0")
    with pytest.raises(TypeError, match="parent"):
        dy.ParameterCollection(3)  # type: ignore[arg-type]
    assert m.add_parameters(2, device="CPU").shape() == (2,)
    assert dy.Model is dy.ParameterCollection


def test_values_in_and_out() -> None:
    m = dy.ParameterCollection()
    a = np.arange(24.0).reshape(2, 3, 4)
    for p in (m.add_parameters((2, 3, 4), init=a), m.parameters_from_numpy(a), m.add_parameters(a)):
        np.testing.assert_array_equal(p.as_array(), a)
        np.testing.assert_array_equal(p.npvalue(), a)
        assert p.shape() == (2, 3, 4)
    for t in (m.add_lookup_parameters((2, 3, 4), init=a), m.lookup_parameters_from_numpy(a)):
        np.testing.assert_array_equal(t.as_array(), a)
        np.testing.assert_array_equal(t[1].npvalue(), a[1])
        np.testing.assert_array_equal(t.row_as_array(-0), a[0])
        np.testing.assert_array_equal(t.rows_as_array([1, 0]), a[::-1])
        assert t.npvalue().shape == (3, 4, 2) and len(t) == 2
    assert m.add_lookup_parameters(5).shape() == (5, 1)
    with pytest.raises(ValueError, match="shape"):
        m.add_parameters((3, 2), init=[[0, 0, 0], [0, 0, 0]])


def test_parameters_outlive_their_collection() -> None:
    p = dy.ParameterCollection().add_subcollection("s").add_parameters(3, init=2.0)
    gc.collect()
    dy.renew_cg()
    assert dy.sum_elems(p).value() == 6 and p.name() == "/s/_0"


def test_a_collection_is_no_cycle() -> None:
    import weakref

    gc.disable()
    try:
        m = dy.ParameterCollection()
        gone = weakref.ref(m.add_subcollection("s").add_parameters(3))
        del m
        assert gone() is None
    finally:
        gc.enable()


FLAT = """
import gc, os
import numpy as np
import dynet_lite as dy
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
gc.disable()
def one():
    m = dy.ParameterCollection()
    p = m.add_parameters((500, 500)); t = m.add_lookup_parameters((500, 500))
    trainer = dy.AdamTrainer(m)
    dy.renew_cg()
    dy.sum_elems(p * t[3]).backward()
    trainer.update()
    dy.renew_cg()
for k in range(20): one()
before = rss()
for k in range(300): one()
print(rss() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_returns() -> None:
    """300 collections of 2 MB, with trainer and graph, without the garbage collector."""
    done = python("-c", FLAT)
    assert done.returncode == 0 and float(done.stdout) < 30, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_copies(how: str) -> None:
    m = dy.ParameterCollection()
    m.set_weight_decay(0.25)
    s = m.add_subcollection("s")
    p, t = s.add_parameters((2, 3)), s.add_lookup_parameters((4, 2))
    q = m.add_parameters(2, name="q")
    q.set_updated(False)
    model = {"m": m, "s": s, "p": p, "t": t, "q": q}
    other = copy.deepcopy(model) if how == "deepcopy" else pickle.loads(pickle.dumps(model))
    assert other["s"].parameters_list() == [other["p"]] and other["m"].parameters_list() == [other["p"], other["q"]]
    for k in "ptq":
        assert other[k] is not model[k] and other[k].name() == model[k].name()
        np.testing.assert_array_equal(other[k].as_array(), model[k].as_array())
    assert other["m"].get_weight_decay() == other["s"].get_weight_decay() == 0.25
    assert not other["q"].is_updated() and other["p"].is_updated()
    other["p"].set_value(np.zeros((2, 3)))
    assert p.as_array().any()
    assert other["s"].add_parameters(1).name() == "/s/_2" == s.add_parameters(1).name()
    assert len(other["m"].parameters_list()) == 3


def test_a_copy_of_one_parameter() -> None:
    p = dy.ParameterCollection().add_parameters((2, 3))
    for other in (copy.deepcopy(p), copy.copy(p), pickle.loads(pickle.dumps(p))):
        np.testing.assert_array_equal(other.as_array(), p.as_array())
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(dy.tanh(p))


def test_gradients_of_a_collection() -> None:
    m = dy.ParameterCollection()
    p, t = m.add_parameters(4, init=1), m.add_lookup_parameters((3, 2), init=1)
    dy.renew_cg()
    (dy.sum_elems(p) * 3 + dy.sum_elems(t[1])).backward()
    assert m.gradient_l2_norm() == pytest.approx(np.sqrt(4 * 9 + 2))
    m.reset_gradient()
    assert m.gradient_l2_norm() == 0 and not p.grad_as_array().any()


def test_repr_and_truth() -> None:
    m = dy.ParameterCollection()
    assert m  # an empty collection is still something
    m.add_parameters((2, 3))
    assert repr(m) == "<parameter collection /: 1 weights, 0 tables, 6 numbers>"


def test_wrong_row_numbers_are_told():
    """In the name of the function, and never another row: 1.7 is not 1."""
    t = dy.ParameterCollection().add_lookup_parameters((5, 3))
    for where, call in (
        ("lookup", t.rows),
        ("lookup_batch", t.batch),
        ("lookup_batch", lambda ids: dy.lookup_batch(t, ids)),
        ("lookup", t.rows_as_array),
        ("lookup", t.rows_grad_as_array),
    ):
        for ids in ("1", 3, None, [1.7], [float("nan")], ["1"], [None], [2**70], [[1], [1, 2]], [1, object()]):
            with pytest.raises((TypeError, ValueError, IndexError), match=rf"^\[{where}\] "):
                call(ids)
    for call in (t.row_as_array, t.row_grad_as_array, lambda i: t.init_row(i, [1, 2, 3])):
        for i in ("x", None, 0.5, 2**70):
            with pytest.raises((TypeError, ValueError, IndexError), match=r"^\[lookup\] "):
                call(i)
    assert t.rows_as_array(np.array([1.0, 2.0])).shape == t.rows_as_array(iter([1, 2])).shape == (2, 3)
    assert t.batch([2.0, np.int8(1)]).dim() == ((3,), 2) and t.batch(range(2)).dim() == ((3,), 2)


def test_set_value_after_set_updated_is_seen_by_the_graph():
    dy.renew_cg()
    m = dy.ParameterCollection()
    p, t = m.add_parameters(2), m.add_lookup_parameters((3, 2))
    p.set_value([1, 1])
    t.init_from_array(np.ones((3, 2)))
    of_weight, of_row, of_table = p * 2.0, t[1] * 2.0, dy.sum_elems(t)
    assert (of_weight.value(), of_row.value(), of_table.value()) == ([2, 2], [2, 2], 6)
    p.set_updated(False)
    t.set_updated(False)
    p.set_value([3, 3])
    t.init_from_array(np.full((3, 2), 3.0))
    assert (of_weight.value(), of_row.value(), of_table.value()) == ([6, 6], [6, 6], 18)


def test_a_weight_is_found_again_behind_a_revert() -> None:
    """It, and a table and its rows, is one node of a graph, even if another graph has had it since."""
    m = dy.ParameterCollection()
    W, T = m.add_parameters(3), m.add_lookup_parameters((4, 3))

    def use() -> int:
        assert [W * 2.0, T[1], dy.sum_elems(T)]
        return len(dy.cg().nodes())

    dy.renew_cg()
    use()
    dy.cg_checkpoint()
    dy.cg_revert()
    with dy.graph():
        use()
    sizes = [use() for _ in range(4)]
    assert len(set(np.diff(sizes))) == 1


def test_set_updated_to_what_it_is_leaves_the_weight_where_it_is():
    dy.renew_cg()
    m = dy.ParameterCollection()
    p, t = m.add_parameters(2), m.add_lookup_parameters((3, 2))
    loss = dy.sum_elems(p) + dy.sum_elems(t)
    nodes = len(dy.cg())
    p.set_updated(True)
    t.set_updated(True)
    loss.backward()
    assert (p.gradient() == 1).all() and (t.gradient() == 1).all()
    assert len(dy.cg()) == nodes


def test_a_seed_that_is_none_changes_no_generator():
    before = dy._core.get_seed_state()
    with pytest.raises(ValueError, match="invalid literal"):
        dy._core.set_seed("x", True)
    assert dy._core.get_seed_state() == before


def test_gradients_of_some_rows():
    m = dy.ParameterCollection()
    t = m.add_lookup_parameters((6, 2, 3))
    assert not t.rows_grad_as_array([5, 0]).any()  # no row has one
    dy.renew_cg()
    dy.esum([dy.sum_elems(t[i]) * float(k) for k, i in enumerate([4, 1, 4], 1)]).backward()
    dense = t.grad_as_array()
    assert dense[4, 0, 0] == 4
    for ids in ([1, 4], [4, 0, 4, 5, 1], [], [2]):
        got = t.rows_grad_as_array(ids)
        assert got.dtype == np.float64 and np.array_equal(got, dense[ids])
    assert np.array_equal(t.row_grad_as_array(np.int64(4)), dense[4])


def test_flat_rows_of_a_table_of_matrices_are_column_major():
    t = dy.ParameterCollection().add_lookup_parameters((4, 2, 3), init=0)
    t.init_row(1, [1, 2, 3, 4, 5, 6])
    t.init_row(2, [[1, 3, 5], [2, 4, 6]])
    assert t.row_as_array(1).tolist() == t.row_as_array(2).tolist() == [[1, 3, 5], [2, 4, 6]]
    assert not t.row_as_array(0).any()


def test_a_row_costs_no_table() -> None:
    table = dy.ParameterCollection().add_lookup_parameters((50_000, 4, 2))
    dy.renew_cg()
    loss = dy.sum_elems(dy.square(table[7]) + table[49_999])
    loss.value()
    loss.backward()
    dense = table.grad_as_array()
    rows = np.arange(8.0).reshape(4, 2)
    tracemalloc.start()
    try:
        one, several = table.row_grad_as_array(7), table.rows_grad_as_array([7, 3, 49_999])
        table.init_row(3, rows)
        table.init_row(4, rows.ravel(order="F").tolist())
        kept = table.row_as_array(3), table.row_as_array(4)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000
    np.testing.assert_array_equal(one, dense[7])
    np.testing.assert_array_equal(several, dense[[7, 3, 49_999]])
    assert not several[1].any()
    for row in kept:
        np.testing.assert_array_equal(row, rows)
    for wrong in (-1, 50_000):
        for call in (table.row_as_array, table.row_grad_as_array, lambda i: table.init_row(i, rows)):
            with pytest.raises(IndexError, match=f"row {wrong} of "):
                call(wrong)


def test_shapes_are_made_once() -> None:
    model = dy.ParameterCollection()
    w, table = model.add_parameters((2, 3)), model.add_lookup_parameters((5, 3))
    assert w.shape is w.shape and table.shape is table.shape
    assert (w.shape, w.shape(), table.shape()) == ((2, 3), (2, 3), (5, 3))
