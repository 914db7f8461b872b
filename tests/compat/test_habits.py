"""Things that programs do and that no manual lists: each of these behaves as on DyNet, checked there by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from real_dynet import python

import dynet_lite as dy


def test_expressions_and_parameters_as_keys() -> None:
    m = dy.ParameterCollection()
    things = [dy.inputVector([1]), m.add_parameters(2), m.add_lookup_parameters((2, 3)), dy.scalarInput(1) + 1]
    table = {e: k for k, e in enumerate(things)}
    assert [table[e] for e in things] == [0, 1, 2, 3] and len(set(things + things)) == 4
    e = things[0]
    assert e == e and e != things[3] and e in things and None not in things
    assert not (e == None) and not (e == [1])  # noqa: E711


def test_arrays_are_float64() -> None:
    """Numbers out of them go into JSON; so do losses."""
    m = dy.ParameterCollection()
    p, table = m.add_parameters((2, 3)), m.add_lookup_parameters((4, 3))
    dy.sum_elems(p).backward()
    arrays = [p.as_array(), p.grad_as_array(), p.npvalue(), p.gradient(), table.as_array(), table.row_as_array(1),
              table.rows_as_array([1, 2]), table.grad_as_array(), table.row_grad_as_array(1),
              table.rows_grad_as_array([0, 3]), dy.ones(3).npvalue()]  # fmt: skip
    assert {a.dtype for a in arrays} == {np.dtype("float64")}
    json.dumps([a.sum() for a in arrays] + [dy.ones(1).value(), dy.ones(2).value(), dy.ones(1).scalar_value()])


def test_errors_are_what_programs_catch(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((4, 3))
    x = dy.inputVector([1, 2, 3])
    calls = [lambda: table[4], lambda: dy.lookup(table, 9), lambda: table.batch([0, 4]), lambda: dy.pick(x, 3),
             lambda: dy.pickneglogsoftmax(x, 3), lambda: dy.hinge(x, 5),
             lambda: dy.sparse_inputTensor([[3]], [1], (3,))]  # fmt: skip
    for kind in (ValueError, IndexError):
        for call in calls:
            with pytest.raises(kind):
                call().value()
    with pytest.raises(IndexError):
        x[3]
    for kind in (RuntimeError, FileNotFoundError):
        with pytest.raises(kind):
            m.populate(tmp_path / "none")
    for kind in (RuntimeError, ValueError):  # DyNet's; programs that ask for a GPU then take the CPU
        for device in (lambda: m.add_parameters(2, device="GPU:9"), lambda: dy.to_device(x, "GPU:9"),
                       lambda: dy.get_device_info("GPU:9")):  # fmt: skip
            with pytest.raises(kind, match="GPU:9"):
                device()
    with pytest.raises(RuntimeError):
        (tmp_path / "bad").write_text("x")
        m.populate(tmp_path / "bad")
    dy.renew_cg()
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind):
            x.value()


def test_the_graph_is_true() -> None:
    assert dy.renew_cg() and dy.cg()


def test_filter_none_keeps_expressions() -> None:
    assert len(list(filter(None, [None, dy.zeros(1), None, dy.zeros(2)]))) == 2
    cache = None
    cache = cache or dy.zeros(1)
    assert cache is not None


def test_value_by_shape() -> None:
    """{1} is a float, {1,1} an array, as any matrix."""
    assert dy.ones(1).value() == 1.0 and isinstance(dy.ones(1).value(), float)
    assert dy.ones((1, 1)).value().tolist() == [[1.0]] and dy.ones((1, 1)).scalar_value() == 1.0
    assert dy.ones(1, batch_size=2).value() == [1.0, 1.0] and dy.ones((3, 1)).value().shape == (3, 1)


def test_dropout_masks_before_the_first_state() -> None:
    m = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, 3, 4, m)
    builder.set_dropouts(0.5, 0.2)
    for _ in range(2):
        dy.renew_cg()
        builder.set_dropout_masks(3)
        out = builder.initial_state().add_input(dy.ones(3, batch_size=3)).output()
        assert out.dim() == ((4,), 3) and np.isfinite(out.npvalue()).all()


def test_windows_and_strides_with_more_numbers() -> None:
    """Written as elsewhere, with four numbers; the first two count. Of equal numbers the first in its row wins."""
    x = dy.inputTensor(np.cos(np.arange(36)).reshape(1, 9, 4))
    f = dy.inputTensor(np.sin(np.arange(60)).reshape(1, 3, 4, 5))
    pooled = dy.maxpooling2d(x, [1, 9, 1], (1, 1, 1, 1))
    assert pooled.dim() == ((1, 1, 4), 1)
    np.testing.assert_array_equal(pooled.npvalue(), dy.maxpooling2d(x, [1, 9], [1, 1]).npvalue())
    for valid in (True, False):
        given = dy.conv2d(x, f, (1, 2, 1, 1), is_valid=valid).npvalue()
        np.testing.assert_array_equal(given, dy.conv2d(x, f, (1, 2), is_valid=valid).npvalue())
    assert dy.maxpooling2d(dy.inputTensor(np.ones((9, 4))), [2, 2], [1, 1]).dim() == ((8, 3), 1)
    assert dy.fold_rows(dy.ones(4)).dim() == ((2, 1), 1)


def test_affine_transform_of_a_column_is_a_vector() -> None:
    b, w, x = dy.ones(4), dy.ones((4, 3)), dy.ones((3, 1))
    assert dy.affine_transform([b, w, x]).dim() == ((4,), 1) and (w * x).dim() == ((4, 1), 1)
    assert dy.affine_transform([b, w, dy.ones((3, 1), batch_size=2)]).dim() == ((4,), 2)


def test_arrays_give_parameters_their_shape() -> None:
    """Programs give the size of a vocabulary that is larger than the array of embeddings; the array's shape counts."""
    m = dy.ParameterCollection()
    with pytest.warns(UserWarning, match="the array's shape is taken"):
        table = m.add_lookup_parameters((7, 3), init=np.ones((5, 3)))
    assert table.shape() == (5, 3) and m.add_parameters((2, 1), init=np.ones(2)).shape() == (2,)


def test_empty_lists() -> None:
    for kind in (ValueError, AssertionError):
        for call in (dy.esum, dy.average, dy.concatenate, dy.emax, dy.logsumexp, dy.concatenate_cols):
            with pytest.raises(kind):
                call([])


def test_flags_of_programs_that_call_dynet_config() -> None:
    """--dynet-autobatch as a switch of the program's own, without a number; DyNet does not look at argv then."""
    code = (
        "import sys; sys.argv = ['x', '--dynet-autobatch', 'train', '--dynet-seed', '5']\n"
        "import dynet_config; dynet_config.set(mem=100, weight_decay=0.25)\n"
        "import dynet as dy; print(dy.ParameterCollection().get_weight_decay(), dynet_config.get()['requested_gpus'])"
    )
    done = python("-c", "import dynet_lite; dynet_lite.install_as_dynet()\n" + code)
    assert done.returncode == 0 and done.stdout.split() == ["0.25", "0"], done.stderr


def test_a_graph_keeps_its_weights() -> None:
    """DyNet's attention example generates on the graph it has just trained on: with the weights from before the update."""
    m = dy.ParameterCollection()
    p, unused = m.add_parameters(5000, init=1.0), m.add_parameters(2, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.125)
    trainer.set_clip_threshold(0)
    with dy.configure(keep_weights=True):
        dy.renew_cg()
        later = dy.sum_elems(unused)
        loss = dy.sum_elems(p)
        for new in (0.875, 0.75):
            loss.backward()
            trainer.update()
            assert p.as_array().tolist() == [new] * 5000
            assert dy.sum_elems(p).value() == 5000 and p.npvalue().sum() == 5000 and loss.value() == 5000
        assert later.value() == 2 and loss.value(recalculate=True) == 3750
        dy.renew_cg()
        assert dy.sum_elems(p).value() == 3750
        table = m.add_lookup_parameters((3, 2), init=1.0)
        row = table[1]
        loss = dy.squared_norm(row)
        for new in (0.75, 0.5):
            loss.backward()
            trainer.update()
            assert row.value() == [1, 1] and dy.square(row).value() == [1, 1] and table[1].value() == [new, new]
        assert loss.value(recalculate=True) == 0.5
    loss = dy.sum_elems(p)
    loss.backward()
    trainer.update()
    assert loss.value() == 3750 and dy.sum_elems(p).value() == 3125


def test_an_input_that_is_set_after_an_update_shows_new_weights() -> None:
    """In DyNet, set() lets everything run again, with the weights of now; only then do nodes made later see them."""
    m = dy.ParameterCollection()
    p = m.add_parameters(2, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.125)
    with dy.configure(keep_weights=True):
        dy.renew_cg()
        loss = dy.sum_elems(p)
        loss.backward()
        trainer.update()
        x = dy.inputVector([1, 1])
        assert dy.dot_product(p, x).value() == 2 == loss.value()
        x = dy.vecInput(2)
        x.set([1, 1])
        assert dy.dot_product(p, x).value() == 1.75 == loss.value()


@pytest.mark.parametrize("change", ["update", "decay", "init_row", "nothing"])
def test_an_input_that_is_set_after_an_update_shows_new_rows(change: str) -> None:
    """The same for rows of tables."""
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((4, 2), init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.125)
    with dy.configure(keep_weights=True):
        dy.renew_cg()
        loss, noise = dy.sum_elems(table[1]), dy.noise(dy.zeros(50), 1.0)
        drawn = noise.npvalue()
        new = 1.0
        if change == "update":
            loss.backward()
            trainer.update()
            new = 0.875
        elif change == "decay":
            m.set_weight_decay_lambda(0.5)
            trainer.update()
            new = 0.5
        elif change == "init_row":
            table.init_row(1, [3, 3])
            new = 3.0
        assert dy.sum_elems(table[1]).value() == 2 * new and loss.value() == 2
        for shows in (change != "nothing", False):
            x = dy.vecInput(2)
            x.set([1, 1])
            assert dy.dot_product(table[1], x).value() == 2 * new == loss.value()
            again = noise.npvalue()
            assert (again != drawn).any() == shows  # else nothing ran again
            drawn = again


def test_lists_of_weights_show_those_of_now() -> None:
    """DyNet makes the objects of a list, and what expr() gives, when they are asked for: programs that save their weights
    after the last update, and have not renewed the graph, get the new ones."""
    m = dy.ParameterCollection()
    builder = dy.GRUBuilder(1, 2, 2, m)
    p, shown = m.add_parameters(2, init=1.0), m.add_parameters(2, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.125)
    trainer.set_clip_threshold(0)
    with dy.configure(keep_weights=True):
        dy.renew_cg()
        before = [q.as_array() for row in builder.get_parameters() for q in row]
        earlier, same = m.parameters_list(), shown.expr()
        loss = dy.sum_elems(builder.initial_state().add_input(p).output() + dy.square(p) + shown)
        for _ in range(2):
            loss.backward()
            trainer.update()
            now = p.as_array()
            assert p.npvalue().tolist() == [1, 1] and now[0] < 0.9
            np.testing.assert_array_equal(m.parameters_list()[-2].npvalue(), now)
            np.testing.assert_array_equal(p.expr().npvalue(), now)
            assert shown.expr().value() == same.value() == [1, 1] != shown.as_array().tolist()
            for row in builder.get_parameters():
                for q in row:
                    np.testing.assert_array_equal(q.npvalue(), q.as_array())
        after = [q.npvalue() for row in builder.get_parameters() for q in row]
        assert sum(not np.array_equal(x, y) for x, y in zip(before, after, strict=True)) > 3
        for q in m.parameters_list():
            q.clip_inplace(-0.01, 0.01)
            q.set_updated(False)
        assert np.abs(p.as_array()).max() == np.float32(0.01) and not p.is_updated()
        assert [q.name() for q in m.parameters_list()] == [q.name() for q in earlier]
        dy.renew_cg()
        assert p.npvalue().tolist() == p.as_array().tolist() and m.parameters_list() == earlier
    assert m.parameters_list() == earlier and builder.get_parameters()[0][0] is builder.get_parameters()[0][0]


@pytest.mark.parametrize("kind", [dy.SimpleSGDTrainer, dy.MomentumSGDTrainer, dy.AdagradTrainer, dy.AdadeltaTrainer,
                                  dy.RMSPropTrainer, dy.AdamTrainer, dy.AmsgradTrainer, dy.EGTrainer])  # fmt: skip
def test_kept_weights_are_updated_as_others(kind: type) -> None:
    results = []
    start = np.random.default_rng(1).uniform(0.1, 1, 5001)
    start /= start.sum()
    for keep in (False, True):
        with dy.configure(keep_weights=keep):
            m = dy.ParameterCollection()
            m.set_weight_decay(0.01)
            p = m.parameters_from_numpy(start)
            trainer = kind(m)
            for step in range(4):
                if step != 2:
                    dy.renew_cg()
                dy.dot_product(p, dy.inputVector(np.cos(np.arange(5001) * step))).backward()
                trainer.update()
            results.append(p.as_array())
    np.testing.assert_array_equal(*results)


def test_floats_where_whole_numbers_are_meant() -> None:
    """hidden / 2 is a float since Python 3, and numbers read from arrays of floats."""
    m = dy.ParameterCollection()
    assert m.add_parameters((6 / 2, np.float64(2))).shape() == (3, 2)
    assert m.add_lookup_parameters((4.0, np.float32(3))).shape() == (4, 3)
    table = m.add_lookup_parameters((4, 3))
    assert table.batch([1.0, 2]).dim() == ((3,), 2) == dy.lookup_batch(table, np.array([0.0, 3])).dim()
    with pytest.raises(ValueError):
        table.batch([0.5])
    for builder in (dy.LSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder):
        state = builder(1, 6 / 2, 8 / 2, m).initial_state()
        assert state.add_input(table[1]).output().dim() == ((4,), 1)
    x = dy.inputVector([1, 2, 3, 4])
    assert dy.pick(x, 1.0).value() == dy.pick(x, np.float64(1)).value() == 2
    assert x[: 4 / 2].value() == [1, 2] and dy.pick_range(x, 0, 4 / 2).value() == [1, 2]
    assert dy.pickneglogsoftmax(x, np.array(1)).value() == dy.pickneglogsoftmax(x, 1.0).value()
    assert dy.inputVector(map(float, "123")).value() == [1, 2, 3] == dy.inputVector(float(c) for c in "123").value()
    with pytest.raises(TypeError):
        x["a":]
    with pytest.raises(TypeError):
        x[:0.5]


def test_whole_numbers_for_an_input() -> None:
    """`y.set(1 if same else -1)`, as in DyNet's first example."""
    y = dy.scalarInput(0)
    for given in (1, -1, 0, True, np.int64(3), 1 << 70, 2.5):
        y.set(given)
        assert y.value() == np.float32(given)
    with pytest.raises(ValueError, match="2 numbers are needed; got 1"):
        dy.inputVector([1, 2]).set(3)


def test_iterables_and_whole_floats() -> None:
    """Whatever has the numbers of a list, and 4 / 2 for 2."""
    x = dy.inputTensor(np.arange(12.0).reshape(3, 4))
    assert dy.strided_select(x, iter([1, 2]), iter([1]), iter([3, 3])).npvalue().tolist() == [[4, 6], [8, 10]]
    assert dy.kmh_ngram(x, 4 / 2).dim() == dy.kmh_ngram(x, 2).dim() and dy.fold_rows(x, 6 / 2).dim() == ((1, 4), 1)
    assert dy.sum_dim(x, 2 / 2).value() == dy.sum_dim(x, 1).value() == dy.sum_dim(x, -1.0).value()
    for wrong in (lambda: dy.sum_dim(x, 0.5), lambda: dy.kmh_ngram(x, 1.5), lambda: dy.fold_rows(x, 1.5)):
        with pytest.raises(ValueError, match="whole number"):
            wrong()


def test_fractions_are_cut_off_in_the_stand_in() -> None:
    """As in DyNet; elsewhere they are an error."""
    code = """
import dynet_lite
dynet_lite.install_as_dynet()
import dynet as dy
m = dy.ParameterCollection()
print(m.add_parameters((7 / 2, 2)).shape(), dy.LSTMBuilder(1, 3, 9 / 2, m).hidden_dim)
x = dy.inputVector([1, 2, 3, 4, 5])
print(x[: 5 / 2].value(), x[5 / 2 :].value(), x[1.5:2.5].value())
left, right = dy.zeroes((2, 3 / 2)), dy.random_normal((2, 5 / 2, 1), batch_size=3 / 2)
print(left.dim(), right.dim(), dy.reshape(x, (11 / 2, 1)).dim(), dy.pick_range(x, 0.5, 2.5).value(), dy.pick(x, 7 / 2).value())
table = m.add_lookup_parameters((4, 1), init=dy.NumpyInitializer([[0], [1], [2], [3]]))
print(table[3 / 2].value(), table.batch([0.5, 2.5]).npvalue())
print(dy.strided_select(x, [5 / 2], [0.5], [9 / 2]).value(), dy.kmh_ngram(dy.reshape(x, (1, 5)), 5 / 2).value())
try: dy.zeros(float("nan"))
except ValueError as error: print(error)
"""
    assert python("-c", code).stdout.splitlines() == [
        "(3, 2) 4",
        "[1.0, 2.0] [3.0, 4.0, 5.0] 2.0",
        "((2, 1), 1) ((2, 2, 1), 1) ((5, 1), 1) [1.0, 2.0] 4.0",
        "1.0 [[0. 2.]]",
        "[1.0, 3.0] [[3. 5. 7. 9.]]",
        "[zeros] a size must be a whole number; got nan",
    ]


def test_truth_values_of_numpy_are_labels() -> None:
    """`for x, y in zip(X, Y == 1)`: whole numbers, as Python's are."""
    yes, both = np.True_, np.array([True, False])
    x = dy.inputVector([1, 2])
    batch = dy.inputTensor(np.array([[1, 3], [2, 4]]), batched=True)
    assert dy.pick(x, yes).value() == 2 and dy.pick_batch(batch, both).value() == dy.pick(batch, both).value() == [2, 3]
    assert dy.pickneglogsoftmax(x, yes).value() == dy.pickneglogsoftmax(x, 1).value()
    assert dy.pickneglogsoftmax_batch(batch, both).value() == dy.pickneglogsoftmax_batch(batch, [1, 0]).value()
    table = dy.ParameterCollection().lookup_parameters_from_numpy(np.eye(2))
    assert table[yes].value() == dy.lookup(table, yes).value() == [0, 1]


def test_truth_values_are_labels_in_the_stand_in() -> None:
    """Of two classes, `probs[is_spam]`. Elsewhere this is an error, for one may take it for a mask."""
    code = """
import dynet_lite; dynet_lite.install_as_dynet()
import dynet as dy, numpy as np
x = dy.inputVector([1, 2])
print(x[True].value(), x[False].value(), dy.inputTensor(np.eye(2))[True].value())
table = dy.ParameterCollection().lookup_parameters_from_numpy(np.eye(2))
for rows in ([True, False], np.array([True, False])):
    print(table.batch(rows).npvalue().tolist(), table.rows_as_array(rows).tolist())
"""
    ones = "[[0.0, 1.0], [1.0, 0.0]]"
    assert python("-c", code).stdout.splitlines() == ["2.0 1.0 [0.0, 1.0]", f"{ones} {ones}", f"{ones} {ones}"]
    with pytest.raises(TypeError, match="got True"):
        dy.inputVector([1, 2])[True]


def test_fewer_rows_than_the_table_has() -> None:
    table = dy.ParameterCollection().add_lookup_parameters((4, 2), init=1.0)
    table.init_from_array(np.zeros((3, 2)))
    assert table.as_array().sum(1).tolist() == [0, 0, 0, 2]
    for wrong in (np.zeros((5, 2)), np.zeros((3, 3)), np.zeros(4), np.zeros((0, 2)), 1.0):
        with pytest.raises(ValueError):
            table.init_from_array(wrong)


def test_the_version_that_programs_ask_for() -> None:
    done = python("-c", "import dynet_lite; dynet_lite.install_as_dynet(); import dynet; print(dynet.__version__)")
    assert done.stdout.strip() == "2.1"
