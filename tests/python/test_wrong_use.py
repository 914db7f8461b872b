"""Wrong use that passed without a word, and errors that did not say what is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import python

import dynet_lite as dy

NAN = float("nan")


@pytest.fixture
def model() -> dy.ParameterCollection:
    dy.renew_cg()
    return dy.ParameterCollection()


def x(n: int = 4) -> Any:
    return dy.inputVector([1.0] * n)


WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "half a size": (lambda m: dy.zeros((2.5,)), ValueError, r"\[zeros\] a size must be a whole number; got 2.5"),
    "a matrix by a number": (
        lambda m: m.add_parameters((2, 3)) * dy.scalarInput(2),
        ValueError,
        r"cmult.* got \{2,3\}, \{1\}",
    ),
    "a number by a vector": (
        lambda m: dy.scalarInput(2) * x(3),
        ValueError,
        r"a number times an array is cmult\(x, y\)",
    ),
    "half a batch": (lambda m: dy.zeros(2, 2.5), ValueError, "the batch size must be a whole number; got 2.5"),
    "half a vector": (lambda m: dy.vecInput(2.5), ValueError, r"\[vecInput\] dim must be a whole number"),
    "half a one_hot": (lambda m: dy.one_hot(2.5, 1), ValueError, r"\[one_hot\] the size must be a whole number"),
    "half a weight": (lambda m: m.add_parameters((2.7, 3)), ValueError, r"\[add_parameters\] dims must be whole"),
    "half a layer": (lambda m: dy.LSTMBuilder(1, 2, 2.5, m), ValueError, "hidden_dim must be a whole number; got 2.5"),
    "None in a vector": (lambda m: dy.inputVector([None]), TypeError, r"\[inputVector\] numbers are needed; got None"),
    "None in set": (lambda m: x(1).set([None]), TypeError, r"\[set\] numbers are needed; got None"),
    "None in a weight": (lambda m: m.add_parameters(2).set_value([None, 1]), TypeError, r"\[set_value\] .* got None"),
    "text in a vector": (lambda m: dy.inputVector(["1"]), TypeError, r"\[inputVector\] numbers are needed"),
    "None in a row": (lambda m: m.add_lookup_parameters((2, 2)).init_row(0, [None, 1]), TypeError, "got None"),
    "None in an initial value": (lambda m: m.add_parameters(2, init=[None, 1]), TypeError, "Numpy.* got None"),
    "text in an initial value": (
        lambda m: m.add_parameters(2, init=dy.NumpyInitializer(["1", "2"])),
        TypeError,
        r"\[NumpyInitializer\] numbers are needed; got an array of <U1",
    ),
    "complex numbers": (lambda m: m.add_parameters(np.ones(2, complex)), TypeError, r"numbers .* array of complex128"),
    "dates": (lambda m: m.add_parameters(2, init=np.zeros(2, "M8[D]")), TypeError, r"numbers .* array of datetime64"),
    "no scale": (
        lambda m: dy.UniformInitializer(float("inf")),
        ValueError,
        r"\[UniformInitializer\] scale must be from 0",
    ),
    "text as a constant": (lambda m: dy.ConstInitializer("1"), TypeError, r"\[ConstInitializer\] c must be a number"),
    "text as a mean": (lambda m: dy.NormalInitializer("1"), TypeError, r"\[NormalInitializer\] mean must be a number"),
    "text as a gain": (lambda m: dy.SaxeInitializer("1"), TypeError, r"\[SaxeInitializer\] scale must be a number"),
    "no variance": (lambda m: dy.NormalInitializer(var=float("inf")), ValueError, "var must be from 0 to .*; got inf"),
    "no gain": (
        lambda m: dy.GlorotInitializer(gain=float("inf")),
        ValueError,
        r"\[GlorotInitializer\] gain must be from",
    ),
    "no gain, fan-in": (lambda m: dy.FanInInitializer(NAN), ValueError, r"\[FanInInitializer\] gain must be from"),
    "text as a bias": (
        lambda m: dy.LSTMBuilder(1, 4, 4, m, forget_bias="1"),
        TypeError,
        r"LSTMBuilder\] forget_bias must be a number; got '1'",
    ),
    "text as a bias of trees": (
        lambda m: dy.NaryTreeLSTMBuilder(2, 1, 4, 4, m, forget_bias="1"),
        TypeError,
        r"\[NaryTreeLSTMBuilder\] forget_bias must be a number; got '1'",
    ),
    "text as a rate": (
        lambda m: dy.LSTMBuilder(1, 4, 4, m).set_dropout("0.5"),
        TypeError,
        r"set_dropout\] a rate must be a number in",
    ),
    "text as a step": (
        lambda m: dy.AdamTrainer(m).set_learning_rate("12"),
        TypeError,
        r"\[set_learning_rate\] value must",
    ),
    "text as a threshold": (
        lambda m: dy.AdamTrainer(m).set_clip_threshold("1"),
        TypeError,
        r"\[set_clip_threshold\] thr",
    ),
    "bytes as a shape": (lambda m: m.add_parameters(b"12"), ValueError, "the shape comes first"),
    "a class as a size": (lambda m: dy.zeros(int), TypeError, r"\[zeros\] a size must be a whole number; got type"),
    "a number in an array": (lambda m: dy.zeros(np.array(1.5)), ValueError, r"\[zeros\] a size must be .* got 1.5"),
    "an array as a list": (lambda m: dy.esum(np.array(1.5)), TypeError, r"\[esum\] takes a list of expressions"),
    "an array as a truth": (
        lambda m: dy.inputTensor([1], np.ones(2)),
        ValueError,
        r"\[inputTensor\] batched must be True or False; got an array of shape \(2,\)",
    ),
    "an option of an op": (
        lambda m: dy.conv2d(dy.zeros((5, 5, 1)), dy.zeros((2, 2, 1, 1)), [1, 1], np.ones(2)),
        ValueError,
        r"\[conv2d\] is_valid must be True or False",
    ),
    "a gradient for backward": (
        lambda m: dy.sum_elems(x()).backward(np.ones(4)),
        ValueError,
        r"\[backward\] full must",
    ),
    "rows of two lengths": (lambda m: dy.inputTensor([[1], [1, 2]]), ValueError, r"\[inputTensor\] setting an array"),
    "arrays of two shapes": (lambda m: dy.inputTensor([np.ones(2), np.ones(3)]), ValueError, r"\[inputTensor\] all"),
    "no table": (
        lambda m: dy.lookup(m.add_parameters(2), 0),
        TypeError,
        r"\[lookup\] a table is needed.* got Parameters",
    ),
    "no table, many": (lambda m: dy.lookup_batch(None, [0]), TypeError, r"\[lookup_batch\] a table .* got None"),
    "rows as a row": (
        lambda m: m.add_lookup_parameters((3, 2)).row_as_array([1, 2]),
        TypeError,
        "row number .* got list",
    ),
    "rows of one": (
        lambda m: m.add_lookup_parameters((3, 2)).init_row([1, 2], [1, 2]),
        TypeError,
        "number .* got list",
    ),
    "half a place": (
        lambda m: dy.sparse_inputTensor([[0.5]], [1], (3,)),
        ValueError,
        r"places must be whole .* got 0.5",
    ),
    "place of text": (
        lambda m: dy.sparse_inputTensor("1", [1], (3,)),
        TypeError,
        r"\[sparse_inputTensor\] a list of places",
    ),
    "a matrix that lies the other way": (
        lambda m: dy.inputTensor(np.ones((2, 3))).set(np.ones((3, 2))),
        ValueError,
        r"\[set\] an array of shape \(2, 3\) is needed, or flat numbers; got \(3, 2\)",
    ),
    "a place below 0": (
        lambda m: dy.sparse_inputTensor([[0, -1]], [1], (3,)),
        IndexError,
        r"\[sparse_inputTensor\] place -1 is out of range",
    ),
    "places of one dim of two": (
        lambda m: dy.sparse_inputTensor([[0]], [1], (3, 2)),
        ValueError,
        r"\[sparse_inputTensor\] a list of places for each of 2 dims is needed; got 1",
    ),
    "places of no dim": (
        lambda m: dy.sparse_inputTensor([], [1], (3,)),
        ValueError,
        r"\[sparse_inputTensor\] a list of places for each of 1 dims is needed; got 0",
    ),
    "half a flat place": (
        lambda m: dy.cg().inputSparseTensor([0.5], [1], 3),
        ValueError,
        r"\[inputSparseTensor\] places",
    ),
    "None at a place": (
        lambda m: dy.cg().inputSparseTensor([0], [None], 3),
        TypeError,
        r"\[inputSparseTensor\] .* None",
    ),
    "follows half": (
        lambda m: dy.LSTMBuilder(1, 4, 2, m).initial_state().transduce([x()], [0.5]),
        ValueError,
        r"\[transduce\] a number of `after` must be a whole number; got 0.5",
    ),
    "follows nothing": (
        lambda m: dy.LSTMBuilder(1, 4, 2, m).initial_state().transduce([x()], 3),
        TypeError,
        r"\[transduce\] `after` needs a list of 1 numbers; got int",
    ),
    "steps of text": (
        lambda m: dy.cg().backward_text("x"),
        TypeError,
        r"\[backward_text\] most must be a whole number",
    ),
    "rate of text": (
        lambda m: dy.AdamTrainer(m, "a"),
        TypeError,
        r"\[AdamTrainer\] learning_rate must be a number; got 'a'",
    ),
    "lookup of text": (lambda m: dy.lookup(m.add_lookup_parameters((2, 2)), 0).set("a"), TypeError, r"\[set\] a row"),
    "lookup of -1": (lambda m: dy.lookup(m.add_lookup_parameters((2, 2)), 0).set(-1), IndexError, r"\[set\] row -1"),
    "scale by nan": (lambda m: m.add_parameters(2).scale(NAN), ValueError, r"\[scale\] the factor must be a finite"),
    "table by inf": (lambda m: m.add_lookup_parameters((2, 2)).scale(1e39), ValueError, r"\[scale\] the factor"),
    "gradient by nan": (lambda m: m.add_parameters(2).scale_gradient(NAN), ValueError, r"\[scale_gradient\]"),
    "order of clips": (
        lambda m: m.add_parameters(2).clip_inplace(1, -1),
        ValueError,
        "left <= right are needed; got 1, -1",
    ),
    "clip by nan": (lambda m: m.add_parameters(2).clip_inplace(NAN, 1), ValueError, "left <= right"),
    "large zeros": (lambda m: dy.zeros((2**31,)), ValueError, r"\[zeros\] too large"),
    "large shape": (
        lambda m: dy.reshape(x(), (2**32 + 2,)),
        IndexError,
        r"\[reshape\] d must fit 32 bits; got 4294967298",
    ),
    "large weight": (lambda m: m.add_parameters((2**33, 2**33)), ValueError, r"\[add_parameters\] too large"),
    "larger weight": (lambda m: m.add_parameters((2**20, 2**20)), ValueError, r"\[add_parameters\] too large"),
    "large row": (
        lambda m: m.add_lookup_parameters((2, 2**20, 2**20)),
        ValueError,
        r"\[add_lookup_parameters\] too large",
    ),
    "row nan": (lambda m: m.add_lookup_parameters((2, 2))[NAN], ValueError, r"\[lookup\] a row number .* got nan"),
    "row inf": (
        lambda m: m.add_lookup_parameters((2, 2))[float("inf")],
        ValueError,
        r"\[lookup\] a row number .* got inf",
    ),
    "row 2**70": (lambda m: m.add_lookup_parameters((2, 2))[2**70], IndexError, r"\[lookup\] row 11805.* with 2 rows"),
    "rows 2**70": (lambda m: m.add_lookup_parameters((2, 2)).rows([0, 2**70]), IndexError, r"\[lookup\] row 11805"),
    "node -1": (lambda m: dy.cg().expression(-1), IndexError, r"\[graph\] node -1 of a graph of"),
    "node 2**70": (lambda m: dy.cg().expression(2**70), IndexError, r"\[graph\] node 11805"),
    "index 2**40": (lambda m: dy.pick(x(), 1).set_index(2**40), IndexError, r"\[set_index\] an index must fit 32 bits"),
    "label": (
        lambda m: dy.pickneglogsoftmax(x(), "a"),
        TypeError,
        r"\[pickneglogsoftmax\] v must be a whole number; got 'a'",
    ),
    "labels": (lambda m: dy.hinge_batch(x(), ["a"]), TypeError, r"\[hinge_batch\] .* must be a whole number; got 'a'"),
    "rate": (lambda m: dy.dropout(x(), "a"), TypeError, r"\[dropout\] p must be a number; got 'a'"),
    "rate None": (lambda m: dy.dropout(x(), None), TypeError, r"\[dropout\] p must be a number"),
    "no expression": (lambda m: dy.tanh("a"), TypeError, "an expression, an array or a number is needed; got 'a'"),
    "lr": (
        lambda m: dy.AdamTrainer(m, lr=0.1),
        TypeError,
        r"\[AdamTrainer\] there is no argument 'lr'; there are m, alpha",
    ),
    "restrict of rows": (
        lambda m: dy.log_softmax(x(), restrict=np.array([[0]])),
        TypeError,
        r"\[log_softmax\] restrict must be a list of whole numbers; got one of \{1\}",
    ),
    "restrict that is masked": (
        lambda m: dy.log_softmax(x(), restrict=np.ma.array([0, 1], mask=[0, 1])),
        TypeError,
        r"\[log_softmax\] restrict must be a list of whole numbers",
    ),
    "two vectors": (lambda m: x() * x(), ValueError, r"\[matmul\] .* cmult\(x, y\)"),
    "threads": (lambda m: dy.configure(threads=10**20), ValueError, "a whole number from 0 to 1024"),
}


TRUTHS: dict[str, Callable[[Any, Any], Any]] = {
    "npvalue": lambda m, v: x().npvalue(v),
    "value": lambda m, v: x().value(v),
    "vec_value": lambda m, v: x().vec_value(v),
    "scalar_value": lambda m, v: x(1).scalar_value(v),
    "tensor_value": lambda m, v: x().tensor_value(v),
    "forward": lambda m, v: x().forward(v),
    "expr": lambda m, v: m.add_parameters(2).expr(v),
    "set_updated": lambda m, v: m.add_parameters(2).set_updated(v),
    "lookup": lambda m, v: dy.lookup(m.add_lookup_parameters((2, 2)), 0, v),
    "lookup_batch": lambda m, v: dy.lookup_batch(m.add_lookup_parameters((2, 2)), [0], v),
    "rows": lambda m, v: m.add_lookup_parameters((2, 2)).rows([0], v),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_an_array_for_true_or_false(model: dy.ParameterCollection, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^\[{name}\] \w+ must be True or False; got an array of shape \(2,\)"):
        TRUTHS[name](model, np.array([1, 0]))
    for v in (True, False, 1, np.array([0])):
        TRUTHS[name](model, v)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(model: dy.ParameterCollection, name: str) -> None:
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        call(model)


@pytest.mark.parametrize(("variable", "value", "message"), [
    ("DYNET_LITE_ISA", "foo", "baseline, avx2, avx512 or neon is needed; got 'foo'"),
    ("DYNET_LITE_BLAS", "foo", "openblas, mkl or system is needed; got 'foo'"),
    ("DYNET_LITE_THREADS", "99999999999999999999", "a whole number from 0 to 1024"),
])  # fmt: skip
def test_variables(variable: str, value: str, message: str) -> None:
    done = python("-c", "import dynet_lite as dy; dy.zeros(2).value()", **{variable: value})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("dynet_lite.errors.SettingError: [config]")
    assert variable in last
    assert message in last


def test_good_variables() -> None:
    code = "import dynet_lite as dy; dy.zeros(2).value(); print(dy._core.describe()['isa'])"
    done = python("-c", code, DYNET_LITE_ISA="baseline", DYNET_LITE_BLAS="openblas")
    assert done.stdout.strip() == "baseline", done.stderr


def test_mkl_where_there_is_none() -> None:
    done = python(
        "-c", "import dynet_lite as dy; dy.zeros(2).value(); print(dy._core.describe()['blas'])", DYNET_LITE_BLAS="mkl"
    )
    if done.returncode:
        assert "[config] DYNET_LITE_BLAS: mkl is not available here" in done.stderr
    else:
        assert done.stdout.startswith("mkl")


def test_paths_as_bytes(model: dy.ParameterCollection, tmp_path: Path) -> None:
    p, name = model.add_parameters(2), bytes(tmp_path / "model")
    model.save(name)
    values = p.as_array()
    p.zero()
    model.populate(name)
    assert p.as_array().tolist() == values.tolist()
    dy.save(name, [p])
    assert len(dy.load(name, dy.ParameterCollection())) == 1


# ---- builders ---------------------------------------------------------------------------------------------------------

BUILDERS = [dy.VanillaLSTMBuilder, dy.LSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder, dy.CoupledLSTMBuilder,
            dy.CompactVanillaLSTMBuilder, dy.SparseLSTMBuilder, dy.FastLSTMBuilder]  # fmt: skip


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("kind", BUILDERS)
def test_inputs_of_builders(model: dy.ParameterCollection, kind: Any, dropout: bool) -> None:
    """The error names the builder and the sizes, and no frame of the package but the call itself follows the line."""
    builder = kind(2, 3, 5, model)
    if dropout and kind is not dy.FastLSTMBuilder:
        builder.set_dropout(0.5)
    for call in (
        lambda s: s.add_input(x(4)),
        lambda s: s.transduce([x(3), x(4)]),
        lambda s: s.add_inputs(iter([x(3), x(4)])),
    ):
        with pytest.raises(
            ValueError, match=rf"^\[{kind.__name__}\] an input of shape \{{3\}} is needed; got \{{4\}}"
        ) as caught:
            call(builder.initial_state())
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        files = [frame.filename for frame in traceback.extract_tb(caught.tb)]
        assert not any("builders" in Path(f).parts and "dynet_lite" in Path(f).parts for f in files[-2:]), files
        assert len(files) - max(i for i, f in enumerate(files) if f == __file__) <= 2, files


def test_states_of_builders(model: dy.ParameterCollection) -> None:
    builder = dy.GRUBuilder(1, 3, 5, model)
    with pytest.raises(ValueError, match=r"\[GRUBuilder\] a state of shape \{5\} is needed; got \{4\}"):
        builder.initial_state([x(4)]).add_input(x(3))


def test_inputs_of_softmax_builders(model: dy.ParameterCollection) -> None:
    for bias in (True, False):
        builder = dy.StandardSoftmaxBuilder(3, 4, model, bias)
        with pytest.raises(
            ValueError, match=r"\[StandardSoftmaxBuilder\] an input of shape \{3\} is needed; got \{4\}"
        ):
            builder.neg_log_softmax(x(4), 1)


# ---- what is asked for --------------------------------------------------------------------------------------------------


def test_ids_that_are_arrays_without_dims(model: dy.ParameterCollection) -> None:
    some, same = ([kind(i) for i in (0, 2)] for kind in (np.array, int))
    assert dy.log_softmax(x(), restrict=some).value() == dy.log_softmax(x(), restrict=same).value()


def test_shape_of_parameters(model: dy.ParameterCollection) -> None:
    """A tuple, which may be called, too."""
    w, t = model.add_parameters((3, 4)), model.add_lookup_parameters((7, 2))
    assert w.shape == (3, 4)
    assert w.shape() == (3, 4)
    assert type(w.shape()) is tuple
    assert t.shape == (7, 2)
    assert t.shape() == (7, 2)
    assert w.shape[1] == 4
    assert np.zeros(w.shape).shape == (3, 4)
    assert x(4).shape == (4,)


def test_transpose_and_relu(model: dy.ParameterCollection) -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    w = model.parameters_from_numpy(a[0])
    assert dy.inputTensor(a[0]).T.npvalue().tolist() == a[0].T.tolist()
    assert w.T.npvalue().tolist() == a[0].T.tolist()
    assert dy.inputTensor(a).T.npvalue().tolist() == a.T.tolist()
    assert x(4).T.shape == (1, 4)
    assert dy.relu(dy.inputVector([-1, 2])).value() == [0, 2]


@pytest.mark.parametrize("batched", [False, True])
def test_shapes_for_set(batched: bool) -> None:
    a = np.arange(6.0).reshape(2, 3)
    flat = a.ravel(order="F")
    for given in (a, a.tolist(), a[:, :, None], flat, flat.tolist(), flat[None]):
        e = dy.inputTensor(np.zeros((2, 3)), batched=batched)
        e.set(given)
        assert e.npvalue().tolist() == a.tolist()


def test_exact_values() -> None:
    dy.renew_cg()
    assert dy.lgamma(dy.inputVector([1, 2])).value() == [0, 0]
    e = dy.inputVector([1, -2])
    y = dy.block_dropout(e, 1)
    dy.sum_elems(y).backward(full=True)
    assert y.value() == [0, 0]
    assert e.gradient().tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        dy.block_dropout(e, 1.5)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        dy.dropout(e, 1)


ENDS_HERE: dict[str, Callable[[Any], Any]] = {
    "row": lambda table: table["a"],
    "lookup": lambda table: dy.lookup(table, "a"),
    "vector": lambda table: dy.inputVector([None]),
    "index": lambda table: dy.pick(x(), 0).set_index(7),
}


@pytest.mark.parametrize("name", ENDS_HERE)
def test_no_compiled_function_in_a_trace(model: dy.ParameterCollection, name: str) -> None:
    """Also of functions that catch an error on its way."""
    with pytest.raises((TypeError, IndexError)) as caught:
        ENDS_HERE[name](model.add_lookup_parameters((2, 2)))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__
