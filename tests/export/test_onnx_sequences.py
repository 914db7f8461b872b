"""Functions over sequences whose length is not known: one file, texts of several lengths, our values."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from exporting import filled, near

import dynet_lite as dy
from dynet_lite import onnx

rng = np.random.default_rng(5)

BUILDERS = {
    "lstm": lambda m: dy.LSTMBuilder(1, 4, 3, m),
    "lstm, two layers": lambda m: dy.LSTMBuilder(2, 4, 3, m),
    "lstm, forget bias": lambda m: dy.VanillaLSTMBuilder(1, 4, 3, m, forget_bias=0.3),
    "gru": lambda m: dy.GRUBuilder(2, 4, 3, m),
    "simple": lambda m: dy.SimpleRNNBuilder(2, 4, 3, m),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("start", [False, True])
def test_builders(name: str, start: bool, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    builder = BUILDERS[name](model)
    filled(model, rng)
    dy.renew_cg()
    size = len(builder.initial_state().add_input(dy.zeros(4)).s())
    states = rng.uniform(-0.9, 0.9, (size, 3)).astype(np.float32)

    def network(xs: Any) -> Any:
        state = builder.initial_state([dy.inputVector(v) for v in states] if start else None)
        ahead = state.transduce(xs)
        back = state.transduce(xs[::-1])
        return ahead, back, ahead[-1], back[-1], ahead[0]

    outputs = ["ahead", "back", "last", "first", "one"]
    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, outputs)
    for n in (1, 2, 6):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        found = runtime(path, {"xs": data})
        dy.renew_cg()
        ahead, back, *_ = network([dy.inputVector(x) for x in data])
        back_in_time = [e.npvalue() for e in back][::-1]
        near(found[0], [e.npvalue() for e in ahead])
        near(found[1], back_in_time)
        near(found[2], ahead[-1].npvalue())
        near(found[3], back_in_time[0])
        near(found[4], ahead[0].npvalue())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", [dy.LSTMBuilder, dy.GRUBuilder])
def test_bidirectional(layers: int, kind: Any, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((9, 4))
    rnn = dy.BiRNNBuilder(layers, 4, 6, model, kind)
    W = model.add_parameters((2, 6))
    filled(model, rng)

    def network(words: Any) -> Any:
        return rnn.transduce(onnx.lookup(table, words)).map(lambda x: W * x)

    path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n")})
    for ids in ([3], [1, 8, 0, 1, 5]):
        (found,) = runtime(path, {"words": np.array(ids)})
        dy.renew_cg()
        near(found, [(W * x).npvalue() for x in rnn.transduce([table[i] for i in ids])])


def test_inner_sequences(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((9, 4))
    rnn = dy.LSTMBuilder(2, 4, 3, model)
    filled(model, rng)

    def network(words: Any) -> Any:
        letters = onnx.lookup(table, words)
        return rnn.initial_state().transduce(letters)[-1].joined(rnn.initial_state().transduce(letters[::-1])[-1])

    path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n", "letters")})
    words = [[1, 2, 3], [4], [8, 7]]
    padded = np.array([[*w, *[0] * (4 - len(w))] for w in words])
    (found,) = runtime(path, {"words": padded, "words_length": np.array([3, 1, 2])})
    dy.renew_cg()
    for row, word in zip(found, words, strict=True):
        xs = [table[i] for i in word]
        ends = [rnn.initial_state().transduce(order)[-1].npvalue() for order in (xs, xs[::-1])]
        near(row, np.concatenate(ends))


def test_all_steps_together(runtime: Any, tmp_path: Any) -> None:
    def network(xs: Any) -> Any:
        first, second, third = xs.windows(3, padding=2)
        runs = first.map(lambda x, y, z: x + 2 * y + 3 * z, second, third)
        return xs.sum(), xs.average(), xs.max(), runs, runs.max()

    names = ["sum", "average", "max", "runs", "strongest"]
    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, names)
    for n in (1, 5):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        around = np.pad(data, [(2, 2), (0, 0)])
        runs = around[:-2] + 2 * around[1:-1] + 3 * around[2:]
        for found, wanted in zip(
            runtime(path, {"xs": data}), [data.sum(0), data.mean(0), data.max(0), runs, runs.max(0)], strict=True
        ):
            near(found, wanted)


WORDS = {"the": 0, "a": 1, "dog": 2, "run": 3}
TREE = ["0 0\tthe", "0 0\ta", "0 1 1\tdog", "0 1 0 1\trun"]
SOFTMAXES = {
    "standard": lambda m: dy.StandardSoftmaxBuilder(4, 4, m),
    "classes of one word": lambda m: dy.ClassFactoredSoftmaxBuilder(4, ["A the", "A a", "B dog", "C run"], WORDS, m),
    "all of one word": lambda m: dy.ClassFactoredSoftmaxBuilder(4, ["A the", "B a", "C dog", "D run"], WORDS, m),
    "nodes of one child": lambda m: dy.HierarchicalSoftmaxBuilder(4, TREE, WORDS, m),
}


@pytest.mark.parametrize("name", SOFTMAXES)
def test_softmax_builders(name: str, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    softmax = SOFTMAXES[name](model)
    filled(model, rng)
    of_steps = {"xs": onnx.Input((4,), "n")}
    path = onnx.export(lambda xs: xs.map(softmax.full_log_distribution), tmp_path / "x.onnx", of_steps)
    for n in (1, 3):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        (found,) = runtime(path, {"xs": data})
        dy.renew_cg()
        near(found, [softmax.full_log_distribution(dy.inputVector(x)).npvalue() for x in data])


def test_what_depends_on_no_step(runtime: Any, tmp_path: Any) -> None:
    def network(xs: Any) -> Any:
        return xs.map(lambda x: dy.inputVector([1, 2])), xs.map(dy.tanh).map(lambda x: dy.inputVector([1, 2]))

    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, ["first", "then"])
    for n in (1, 3):
        for found in runtime(path, {"xs": np.zeros((n, 4), dtype=np.float32)}):
            near(found, [[1, 2]] * n)


def test_parameters_as_states_and_steps(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    rnn = dy.GRUBuilder(1, 4, 3, model)
    root, start = model.add_parameters(4), model.add_parameters(3)
    filled(model, rng)

    def network(xs: Any) -> Any:
        whole = xs.begun(root)
        return rnn.initial_state([start]).transduce(whole), whole.products(xs), start

    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, ["states", "pairs", "start"])
    for n in (1, 4):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        states, pairs, first = runtime(path, {"xs": data})
        whole = np.concatenate([root.as_array()[None], data])
        dy.renew_cg()
        near(states, [e.npvalue() for e in rnn.initial_state([start]).transduce([dy.inputVector(x) for x in whole])])
        near(pairs, whole @ data.T)
        near(first, start.as_array())


def test_a_step_with_states(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((9, 4))
    rnn = dy.LSTMBuilder(2, 4, 3, model)
    filled(model, rng)
    names = ["c0", "c1", "h0", "h1"]

    def network(word: Any, **states: Any) -> Any:
        return rnn.initial_state([states[n] for n in names]).add_input(onnx.lookup(table, word)).s()

    inputs = {"word": onnx.Ids(), **{n: onnx.Input((3,)) for n in names}}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, [f"new_{n}" for n in names])
    dy.renew_cg()
    state, values = rnn.initial_state(), {n: np.zeros(3, dtype=np.float32) for n in names}
    for i in (4, 2, 7):
        state = state.add_input(table[i])
        values = dict(zip(names, runtime(path, {"word": np.array(i), **values}), strict=True))
        near(list(values.values()), [e.npvalue() for e in state.s()])


def test_numbers_of_numpy_are_sizes(runtime: Any, tmp_path: Any) -> None:
    four, two = np.arange(2, 5, 2)[::-1]
    path = onnx.export(lambda x: x * 2.0, tmp_path / "x.onnx", {"x": onnx.Input((four,), batch=two)}, "y")
    near(runtime(path, {"x": np.ones((2, 4), dtype=np.float32)})[0], 2 * np.ones((2, 4)))
    assert onnx.Children("n", two, (0, 2)) == onnx.Children("n", 2, (0, 2)) and onnx.Input(4) == onnx.Input((4,))  # type: ignore[arg-type]


def test_weights_are_stored_once(runtime: Any, tmp_path: Any) -> None:
    import onnx as package

    model = dy.ParameterCollection()
    W = model.add_parameters((4, 4), name="W")
    path = onnx.export(lambda x: W * (W * x), tmp_path / "x.onnx", {"x": onnx.Input((4,))}, metadata={"who": "me"})
    loaded = package.load(path)
    assert [t.name for t in loaded.graph.initializer] == ["W"]
    assert loaded.opset_import[0].version == onnx.OPSET
    assert [(p.key, p.value) for p in loaded.metadata_props] == [("who", "me")]
    assert [i.name for i in loaded.graph.input] == ["x"] and [o.name for o in loaded.graph.output] == ["output"]


def test_a_table_is_copied_once(runtime: Any, tmp_path: Any) -> None:
    """However many of its rows a function names."""

    class Table:
        name, shape = staticmethod(lambda: "/E"), staticmethod(lambda: (5, 3, 2))
        copies = 0

        def as_array(self) -> Any:
            self.copies += 1
            return np.arange(30.0).reshape(5, 3, 2)

    table, writer = Table(), onnx.writer.Writer()
    assert [onnx.symbolic.table_name(writer, table) for _ in range(4)] == ["E"] * 4  # type: ignore[arg-type]
    assert table.copies == 1 and list(writer.initializers[0].dims) == [5, 2, 3]


kept = dy.ParameterCollection()


def started(kind: Any) -> Any:
    """A sequence of a builder, from a state with a mini-batch."""
    return kind(1, 4, 3, kept).initial_state([dy.zeros(3, 2), dy.zeros(3, 2)])


def test_files_have_a_largest_size(runtime: Any, tmp_path: Any, monkeypatch: Any) -> None:
    model = dy.ParameterCollection()
    W, V = model.add_parameters((10, 4)), model.add_parameters((4, 10))
    inputs = {"x": onnx.Input((4,))}
    monkeypatch.setattr(onnx.writer, "LARGEST", 2 * 160)
    onnx.export(lambda x: V * (W * x), tmp_path / "x.onnx", inputs)
    with pytest.raises(onnx.Unsupported, match="more than 2 GB"):
        onnx.export(lambda x: V * (W * x) + dy.ones(4), tmp_path / "y.onnx", inputs)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda xs: dy.dropout(xs[0], 0.5), r"dropout \(.*test_onnx_sequences.py:\d+\)"),
        (lambda xs: list(xs), "cannot be iterated"),
        (lambda xs: xs[len(xs) // 2], "length n"),
        (lambda xs: dy.ones((2, 4)) * xs, r"step by step: xs.map"),
        (lambda xs: xs + 1, r"step by step: xs.map"),
        (lambda xs: xs[2], r"\[0\], \[-1\]"),
        (lambda xs: dy.concatenate_to_batch([xs.e, xs.e]), r"concatenate_to_batch.*test_onnx_sequences.py:\d+"),
        (lambda xs: dy.reshape(xs.e, (4, 61)), "reshape"),
        (lambda xs: dy.sum_batches(xs.e + dy.zeros(4, 61)), r"sizes n and 61 .*test_onnx_sequences.py:\d+"),
        (lambda xs: xs.map(lambda x: dy.zeros(4, 5)), "map: the function gives a mini-batch of 5"),
        (lambda xs: started(dy.LSTMBuilder).transduce(xs), "transduce: a state with a mini-batch"),
        (lambda xs: started(dy.CoupledLSTMBuilder).transduce(xs), "transduce: a state with a mini-batch"),
        (
            lambda xs: xs.map(lambda x: x - dy.sum_batches(x)),
            r"sum_batches \(.*test_onnx_sequences.py:\d+\) combines the steps of n inside",
        ),
        (
            lambda xs: xs.map(lambda x: xs.map(lambda y: dy.cmult(x, y)).sum()),
            r"cmult \(.* combines the steps of n with others of n inside",
        ),
        (lambda xs: xs.map(lambda x: xs.begun(x)[0]), "combines the steps of n inside"),
        (
            lambda xs: xs.map(lambda x: x + dy.tanh(xs.e)),
            r"add \(.*test_onnx_sequences.py:\d+\) combines the steps of n with others of n inside of .*: xs.map\(f, ys\)",
        ),
        (
            lambda xs: xs.map(lambda x: onnx.attend(x, xs, xs, 1)),
            r"attend: one query is needed.*\{4\}Xn",
        ),
        (lambda xs: xs.map(lambda x: x * (1 / x.batch_size)), "n, a size of mini-batches, is not known"),
        (lambda xs: xs.map(lambda x: x * x.dim()[1]), "n, a size of mini-batches, is not known"),
        (lambda xs: xs.windows(61), "windows: a width of 61"),
        (
            lambda xs: dy.LSTMBuilder(1, 4, 3, kept).initial_state().transduce(xs, after=[-1]),
            "`after` and `lengths` have",
        ),
        (
            lambda xs: dy.LSTMBuilder(1, 4, 3, kept).initial_state().transduce(xs, lengths=[1]),
            "`after` and `lengths` have",
        ),
    ],
)
def test_what_has_no_form_is_refused(network: Any, message: str, runtime: Any, tmp_path: Any) -> None:
    with pytest.raises(onnx.Unsupported, match=message):
        onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")})
    assert not (tmp_path / "x.onnx").exists()


@pytest.mark.parametrize("kind", [dy.LSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder, dy.CoupledLSTMBuilder])
def test_inputs_of_another_size(kind: Any, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    builder, table = kind(1, 4, 3, model), model.add_lookup_parameters((5, 2))
    inner = kind in (dy.LSTMBuilder, dy.GRUBuilder)  # sequences of sequences
    for ids in (onnx.Ids("n"), onnx.Ids("n", "letters"))[: 1 + inner]:
        with pytest.raises(
            ValueError, match=rf"{type(builder).__name__}\] an input of shape \{{4\}} is needed; got \{{2\}}"
        ):
            onnx.export(
                lambda ids: builder.initial_state().transduce(table[ids])[-1], tmp_path / "x.onnx", {"ids": ids}
            )


def test_threads_that_export(runtime: Any, tmp_path: Any) -> None:
    """Both are inside of their functions at the same time."""
    both = threading.Barrier(2, timeout=60)

    def work(k: int) -> Any:
        def network(xs: Any) -> Any:
            both.wait()
            found = xs.windows(3, padding=k)[0].sum()
            both.wait()
            return found

        return onnx.export(network, tmp_path / f"{k}.onnx", {"xs": onnx.Input((4,), "n")})

    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(work, (1, 2)))
    for k, path in enumerate(paths, 1):
        near(runtime(path, {"xs": np.ones((3, 4), dtype=np.float32)})[0], [1 + k] * 4)


def test_what_a_map_may_take_from_outside(runtime: Any, tmp_path: Any) -> None:
    """Steps that are combined outside of the function, and lengths that are the same again."""

    def network(xs: Any) -> Any:
        mean, (first, _) = xs.average(), xs.begun(xs[0]).windows(2)
        return xs.map(lambda x: x - mean), xs.map(lambda x: x - xs.average()), xs.map(lambda x, y: x - y, first)

    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, ["a", "b", "c"])
    for n in (1, 4):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        a, b, c = runtime(path, {"xs": data})
        near(a, data - data.mean(0))
        near(b, data - data.mean(0))
        near(c, data - data[[0, *range(n - 1)]])


def test_sizes_of_mini_batches(runtime: Any, tmp_path: Any) -> None:
    """They are known, or there is a name for them; an error says which."""
    two = onnx.export(lambda x: x * (1 / x.batch_size), tmp_path / "x.onnx", {"x": onnx.Input((4,), batch=2)})
    near(runtime(two, {"x": np.ones((2, 4), dtype=np.float32)})[0], np.full((2, 4), 0.5))
    inputs = {"x": onnx.Input((4,), batch="b"), "y": onnx.Input((4,), batch="c")}
    for f in (
        lambda x, y: dy.sum_batches(x) * (1 / x.batch_size),
        lambda x, y: x * float(x.dim()[1]),
        lambda x, y: dy.esum([dy.pick_batch_elem(x, k) for k in range(x.batch_size)]),
        lambda x, y: x + dy.inputTensor(np.ones((4, x.batch_size)), batched=True),
        lambda x, y: dy.pick_batch_elem(x, x.batch_size),
        lambda x, y: dy.mean_dim(x, 0, True, n=x.batch_size),
        lambda x, y: dy.concatenate([x] * x.batch_size),
        lambda x, y: x if x.batch_size > 2 else -x,
        lambda x, y: dy.zeros(x.batch_size),
        lambda x, y: x[:, -1],
    ):
        with pytest.raises(onnx.Unsupported, match="b, a size of mini-batches, is not known"):
            onnx.export(f, tmp_path / "x.onnx", inputs)
    with pytest.raises(ValueError, match=r"X61, \{4\}X125; 61 stands for b and 125 stands for c, not known"):
        onnx.export(lambda x, y: x + y, tmp_path / "x.onnx", inputs)
    with pytest.raises(ValueError, match="needs 61 labels, got 1.*; 61 stands for b, not known"):
        onnx.export(lambda x, y: dy.hinge(x, 1), tmp_path / "x.onnx", inputs)


def test_sizes_that_are_handed_on(runtime: Any, tmp_path: Any) -> None:
    """What is made with the size of a mini-batch has it when the file runs."""

    def network(x: Any, xs: Any) -> Any:
        assert (
            x.batch_size > 1 and x.batch_size == (x + 1).dim()[1] != xs.e.batch_size and x.batch_size in {x.batch_size}
        )
        assert f"{x.batch_size}" == "b"
        ones = xs.map(lambda step: step - dy.ones(4, batch_size=step.batch_size))
        folded = dy.reshape(x, (2, 2), batch_size=x.batch_size)
        return (
            dy.zeros((2, 3), batch_size=x.batch_size),
            dy.constant(4, 0.5, x.dim()[1]) + x,
            folded,
            ones,
            dy.zeroes(1, xs.e.batch_size),
        )

    specs = {"x": onnx.Input((4,), batch="b"), "xs": onnx.Input((4,), "n")}
    path = onnx.export(network, tmp_path / "x.onnx", specs, list("VWXYZ"))
    for b, n in ((1, 3), (5, 1), (61, 125), (70, 2)):
        x, xs = (np.random.default_rng(k).standard_normal((k, 4)).astype(np.float32) for k in (b, n))
        v, w, folded, y, z = runtime(path, {"x": x, "xs": xs})
        assert v.shape == (b, 3, 2) and not v.any()
        near(w, x + 0.5)
        near(folded, x.reshape(b, 2, 2))
        near(y, xs - 1)
        assert z.shape == (n, 1) and not z.any()


def test_a_failed_export_leaves_no_graph(tmp_path: Any) -> None:
    """Nodes that ran in it would make each update keep the weights of before."""
    pytest.importorskip("onnx")
    graphs: list[Any] = []

    def asks(x: Any) -> Any:
        graphs.append(weakref.ref(dy.cg()))
        dy.tanh(x).value()
        return dy.zeros(4, batch_size=x.batch_size) + x

    with pytest.raises(ValueError, match="asks for a value"):
        onnx.export(asks, tmp_path / "x.onnx", {"x": onnx.Input((4,), batch="b")})
    gc.collect()
    assert graphs[0]() is None


def test_mistakes(runtime: Any, tmp_path: Any) -> None:
    inputs = {"x": onnx.Input((4,))}
    for one in ({"w": onnx.Ids("n", "letters"), "w_length": onnx.Ids("n")}, {"": onnx.Input((4,))}):
        with pytest.raises(ValueError, match="inputs: the file needs names that are not equal, and not empty"):
            onnx.export(lambda **given: dy.zeros(3), tmp_path / "x.onnx", one)
    with pytest.raises(onnx.Unsupported, match=r"i is a number that is not known .*: use table\[i\]"):
        onnx.export(lambda x, i: dy.pick(x, i), tmp_path / "x.onnx", {**inputs, "i": onnx.Ids()})
    with pytest.raises(TypeError, match="map: the function gives an expression for each step; got Sequence"):
        onnx.export(lambda xs: xs.map(lambda x: xs), tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")})
    with pytest.raises(ValueError, match="asks for a value"):
        onnx.export(lambda x: x * float(dy.sum_elems(x).value()), tmp_path / "x.onnx", inputs)
    with pytest.raises(ValueError, match="asks for a value"):
        onnx.export(lambda x: x.npvalue(), tmp_path / "x.onnx", inputs)
    for given in (onnx.Input((4,)), onnx.Input((4,), batch="b")):
        with pytest.raises(ValueError, match=r"^\[set\] an input of the file has no numbers"):
            onnx.export(lambda x: x.set([1.0] * 4) or x, tmp_path / "x.onnx", {"x": given})
    with pytest.raises(ValueError, match="2 outputs are named"):
        onnx.export(lambda x: x, tmp_path / "x.onnx", inputs, ["a", "b"])
    with pytest.raises(TypeError, match="output a"):
        onnx.export(lambda x: 3.0, tmp_path / "x.onnx", inputs, ["a"])
    for names in ([], ["a", "a"], ["x"], iter("xy")):
        with pytest.raises(ValueError, match=r"outputs: names are needed that are not equal, .*; got \["):
            onnx.export(lambda x: (x, x), tmp_path / "x.onnx", inputs, names)  # type: ignore[arg-type]
    for shape in ((), "n", (2.5,)):
        with pytest.raises(TypeError, match=r"Input: a shape such as \(4,\) is needed"):
            onnx.Input(shape)  # type: ignore[arg-type]
    for batch in ("", None, 2.5):
        with pytest.raises(TypeError, match=r"Input: batch is a size or the name of one; got"):
            onnx.Input((4,), batch=batch)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"input x: onnx.Input"):
        onnx.export(lambda x: x, tmp_path / "x.onnx", {"x": (4,)})
    for given, shown in ((dy.zeros(2), r"\{2\}"), ([onnx.Input((4,))], "a list"), (None, "None")):
        with pytest.raises(TypeError, match=rf"^\[onnx\] inputs: a dict, such as .*, is needed; got {shown}$") as error:
            onnx.export(dy.tanh, tmp_path / "x.onnx", given)
        assert str(error.traceback[-1].path) == __file__, "the trace ends at the call"
    with pytest.raises(RuntimeError, match="inside a function"):
        onnx.lookup(dy.ParameterCollection().add_lookup_parameters((2, 2)), onnx.symbolic.Chosen("x", onnx.Ids()))
    dropping, noisy, fewer = (dy.CompactVanillaLSTMBuilder(1, 4, 3, kept) for _ in range(3))
    dropping.set_dropout(0.2)
    noisy.set_weightnoise(0.1)
    fewer.set_weight_dropout(0.1)
    for builder, said in ((dropping, "disable_dropout"), (noisy, "set_weightnoise"), (fewer, "set_weight_dropout")):
        with pytest.raises(onnx.Unsupported, match=said):
            onnx.export(
                lambda xs: builder.initial_state().transduce(xs),  # noqa: B023
                tmp_path / "x.onnx",
                {"xs": onnx.Input((4,), "n")},
            )
