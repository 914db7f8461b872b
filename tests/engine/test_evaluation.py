"""Incremental evaluation, renewal, checkpoints, full gradients, threads, several graphs."""

import os
import threading

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy


@pytest.fixture
def model():
    pc = dy.ParameterCollection()
    rng = np.random.default_rng(7)
    w = pc.parameters_from_numpy(rng.normal(size=(8, 8)) * 0.4)
    b = pc.parameters_from_numpy(rng.normal(size=8) * 0.4)
    out = pc.parameters_from_numpy(rng.normal(size=(5, 8)))
    e = pc.lookup_parameters_from_numpy(rng.normal(size=(20, 8)))
    return pc, w, b, out, e


def sentence_loss(model, words):
    _, w, b, out, e = model
    h = b
    losses = []
    for i in words:
        h = dy.tanh(w * h + e[i])
        losses.append(dy.pickneglogsoftmax(out * h, i % 5))
    return dy.esum(losses)


def gradients(model):
    pc = model[0]
    return [p.grad_as_array() for p in pc.parameters_list() + pc.lookup_parameters_list()]


def clear(model):
    for p in model[1:]:
        p.zero_gradient()


SENTENCES = [[1, 2, 3], [4, 2, 9, 9], [5], [7, 7, 7, 1, 0, 3, 2]]


def test_values_in_the_middle_change_nothing(model):
    dy.renew_cg()
    whole = dy.esum([sentence_loss(model, s) for s in SENTENCES])
    whole.backward()
    expected, expected_grad = whole.value(), gradients(model)
    clear(model)
    dy.renew_cg()
    losses = []
    for s in SENTENCES:
        losses.append(sentence_loss(model, s))
        losses[-1].value()  # evaluates what is new, and only that
    assert dy.cg().stats()["plans"] == len(SENTENCES)
    total = dy.esum(losses)
    total.backward()
    assert total.value() == pytest.approx(expected, rel=1e-6)
    for a, b in zip(gradients(model), expected_grad, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_all_pending_nodes_run_together(model):
    """Lock-step programs: reading one sentence's value runs what is pending of the others in the same batches."""
    dy.renew_cg()
    scores = [model[3] * dy.tanh(model[1] * model[4][i]) for i in range(16)]
    scores[0].npvalue()
    stats = dy.cg().stats()
    assert stats["batches"] == 3 and stats["nodes"] == 48
    for s in scores:
        s.npvalue()
    assert dy.cg().stats()["plans"] == 1


def test_backward_from_an_earlier_node_leaves_later_ones_alone(model):
    dy.renew_cg()
    first = sentence_loss(model, [1, 2])
    second = sentence_loss(model, [3, 4])
    second.value()
    first.backward()
    expected = gradients(model)
    clear(model)
    dy.renew_cg()
    sentence_loss(model, [1, 2]).backward()
    for a, b in zip(gradients(model), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_backward_twice_adds(model):
    dy.renew_cg()
    loss = sentence_loss(model, [1, 2, 3])
    loss.backward()
    once = gradients(model)
    loss.backward()
    for a, b in zip(gradients(model), once, strict=True):
        np.testing.assert_allclose(a, 2 * b, rtol=1e-6, atol=1e-7)


def test_full_backward_gives_gradients_of_inputs():
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0, 3.0])
    y = dy.dot_product(x, x)
    y.backward(full=True)
    np.testing.assert_allclose(x.gradient(), [2, 4, 6])


def test_gradient_before_backward_is_an_error():
    dy.renew_cg()
    x = dy.tanh(dy.inputVector([1.0]))
    with pytest.raises(RuntimeError, match="backward"):
        x.gradient()


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("run", ["all", "later", "again"])
def test_gradients_stay_when_later_nodes_go(model, run, times):
    _, w, b, _, e = model
    for _ in range(times):  # the last by a plan that is kept
        dy.renew_cg()
        clear(model)
        x, outside = e[1], e[2]
        loss = dy.squared_norm(dy.tanh(w * x + b))
        loss.backward()
        if run == "all":
            loss = dy.squared_norm(dy.tanh(w * x + b)) * 2.0
            loss.backward()
        wanted = x.gradient()
        assert wanted.any() and not outside.gradient().any()
        for k in range(2):
            dy.cg_checkpoint()
            later = dy.squared_norm(x) * (k + 1.0)
            if run != "later":
                later.value()
            if run == "again":
                later.value(recalculate=True)
                loss.backward()
                wanted = x.gradient()
            dy.cg_revert()
            if run == "again":  # what the pass went through ran together with nodes that have gone
                loss.backward()
            np.testing.assert_array_equal(x.gradient(), wanted)
            assert not outside.gradient().any()
        clear(model)
        loss.backward()
        np.testing.assert_array_equal(x.gradient(), wanted)
        dy.cg_checkpoint()
        dy.squared_norm(e[4]).backward()  # another pass, whose loss goes
        dy.cg_revert()
        with pytest.raises(RuntimeError, match="backward"):
            x.gradient()
        loss.backward()
        np.testing.assert_array_equal(x.gradient(), wanted)


def test_an_input_that_is_set_before_it_has_run_lets_what_has_run_stay():
    """As in parsers that make an input for the features of each step and set its numbers: no step runs those before."""
    table = dy.ParameterCollection().add_lookup_parameters((3, 2), init=np.array([[1, 2], [3, 4], [5, 6]]))
    dy.renew_cg()
    y = dy.noise(dy.zeros(50), 1.0)
    drawn = y.npvalue()
    x, row = dy.vecInput(2), dy.lookup(table, 0)
    x.set([1, 2])
    row.set(2)
    total = dy.dot_product(x, row)
    assert total.value() == 17
    batches = dy.stats()["batches"]
    assert (y.npvalue() == drawn).all() and batches == 2
    x.set([3, 4])  # has run: everything runs again
    assert total.value() == 39 and (y.npvalue() != drawn).any()
    drawn = y.npvalue()
    row.set(1)
    x.set([0, 1])
    assert total.value() == 4 and (y.npvalue() != drawn).any()


def test_revert_drops_nodes_and_their_expressions(model):
    dy.renew_cg()
    a = dy.tanh(model[2])
    kept = a.npvalue()
    dy.cg_checkpoint()
    b = dy.tanh(a * 2.0)
    b.value()
    size = len(dy.cg())
    dy.cg_revert()
    assert len(dy.cg()) < size
    with pytest.raises(dy.StaleExpressionError):
        b.value()
    c = dy.exp(a)  # takes the place of b
    with pytest.raises(dy.StaleExpressionError):
        dy.tanh(b)
    np.testing.assert_allclose(a.npvalue(), kept)
    np.testing.assert_allclose(c.npvalue(), np.exp(kept), rtol=1e-5)
    dy.sum_elems(c).backward()


def test_going_back_gives_memory_back():
    """A search that tries one thing after another needs no more memory than the largest of them."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters((8, 1000)), m.add_lookup_parameters((3, 1000))
    for _ in range(3):
        dy.renew_cg()
    h = W * dy.inputVector(np.ones(1000))
    before = h.npvalue()
    bytes_taken = []
    for k in range(150):
        dy.cg_checkpoint()
        x = dy.inputVector(np.full(1000, 0.1)) + dy.sum_batches(E.batch([k % 3, 1]))
        y = h + W * x
        first = y.npvalue()
        z = y + W * dy.tanh(x)
        assert (z.npvalue() != first).any()
        dy.cg_revert()
        bytes_taken.append((dy.stats()["value_bytes"], dy.heap_calls()))
    assert len(set(bytes_taken[20:])) == 1
    np.testing.assert_array_equal(h.npvalue(), before)


def test_going_back_takes_no_memory_anew_in_each_round():
    m = dy.ParameterCollection()
    W = m.add_parameters((2000, 8))
    tries, calls = 20, []
    for _ in range(8):
        dy.renew_cg()
        h = dy.tanh(dy.inputVector(np.ones(8)))
        h.value()
        before = dy.heap_calls()
        for k in range(tries):
            dy.cg_checkpoint()
            dy.esum([dy.sum_elems(W * (h * float(k + n))) for n in range(50)]).value()
            dy.cg_revert()
        calls.append(dy.heap_calls() - before)
    assert max(calls[-2:]) < tries


def test_marks_nest(model):
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0])
    dy.cg_checkpoint()
    y = x + x
    dy.cg_checkpoint()
    z = y + y
    np.testing.assert_allclose(z.npvalue(), [4, 8])
    dy.cg_revert()
    np.testing.assert_allclose((y + x).npvalue(), [3, 6])
    dy.cg_revert()
    np.testing.assert_allclose((x + 1.0).npvalue(), [2, 3])


@pytest.mark.parametrize("use", [lambda x: dy.tanh(x), lambda x: x + x, lambda x: dy.esum([x]), lambda x: x.value(),
                                 lambda x: x.dim(), lambda x: x.backward(), lambda x: x[0], lambda x: 1 + x])  # fmt: skip
def test_stale_expressions_are_refused(use):
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0])
    dy.renew_cg()
    dy.inputVector([5.0, 6.0])
    with pytest.raises(ValueError) as e:
        use(x)
    assert isinstance(e.value, RuntimeError) and "stale" in str(e.value)


def test_graph_blocks(model):
    dy.renew_cg()
    outer = dy.tanh(model[2])
    with dy.graph():
        inner = dy.tanh(model[2])
        with pytest.raises(dy.StaleExpressionError):
            inner + outer  # noqa: B018
        np.testing.assert_allclose(inner.npvalue(), outer.npvalue())
    np.testing.assert_allclose((outer + outer).npvalue(), 2 * inner.npvalue(), rtol=1e-6)


def test_an_error_while_building_leaves_the_graph_usable(model):
    dy.renew_cg()
    x = dy.tanh(model[2])
    size = len(dy.cg())
    for _ in range(3):
        with pytest.raises(ValueError, match=r"\[affine_transform\].*\{8\}, \{8,8\}, \{3\}"):
            dy.affine_transform([model[2], model[1], dy.inputVector([1, 2, 3])])
    assert len(dy.cg()) == size + 4  # the bias entered once, and the three inputs
    np.testing.assert_allclose(x.npvalue(), np.tanh(model[2].as_array()), rtol=1e-5)


def test_validity_check_names_node_and_line():
    dy.renew_cg(check_validity=True)
    x = dy.inputVector([-1.0, 1.0])
    y = dy.log(x)
    with pytest.raises(RuntimeError, match=r"\[log \{2\}\].*test_evaluation.py:\d+"):
        y.value()


def test_validity_checks_remember_the_line_of_each_node():
    dy.renew_cg(check_validity=True)
    code = "import dynet_lite as dy\nx = dy.inputVector([0.5])\nfor _ in range(2):\n    y = dy.log(x); z = dy.exp(y)\n    z = dy.sqrt(z)\n"
    for name in ("one", "another"):  # code of its own each, at the same lines
        exec(compile(code, name, "exec"), {})
    assert list(dy.cg().origins.values()) == [f"{name}:{k}" for name in ("one", "another") for k in [4, 4, 5] * 2]


def test_validity_checks_remember_the_lines_of_code_that_is_gone():
    """Much code that a program makes, runs and drops: other code comes to lie there. And lines of the package's callers."""
    dy.renew_cg(check_validity=True)
    x = dy.inputVector([0.5])
    for turn in range(3000):
        made = {"dy": dy, "x": x}
        exec(compile("\n" * (turn % 7) + "dy.log(x)\ndy.exp(x)", f"code {turn}", "exec"), made)
    state = dy.LSTMBuilder(1, 1, 1, dy.ParameterCollection()).initial_state()
    found = list(dy.cg().origins.values())
    assert found[:6000] == [f"code {turn}:{turn % 7 + k}" for turn in range(3000) for k in (1, 2)]
    for _ in range(2):
        state = state.add_input(x)
    assert {place.rpartition(":")[0] for place in list(dy.cg().origins.values())[6000:]} == {__file__}


def test_immediate_mode_computes_at_the_line(model):
    dy.renew_cg(immediate_compute=True, check_validity=True)
    x = dy.inputVector([0.0])
    with pytest.raises(RuntimeError, match="infinity"):
        dy.log(x)


def big_batch(model, n):
    rng = np.random.default_rng(3)
    words = [list(rng.integers(0, 20, size=rng.integers(4, 30))) for _ in range(n)]
    return dy.esum([sentence_loss(model, [int(i) for i in s]) for s in words]) / n


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("strategy", ["none", "depth", "agenda", "greedy"])
def test_threads_agree_with_one(model, threads, strategy):
    def run(t):
        clear(model)
        with dy.configure(threads=t, strategy=strategy, verify=True):
            dy.renew_cg(autobatching=strategy != "none")
            loss = big_batch(model, 400)
            value = loss.value()
            loss.backward()
            return value, gradients(model), dy.cg().stats()

    v1, g1, s1 = run(1)
    vt, gt, st = run(threads)
    again = run(threads)
    assert st["nodes"] == s1["nodes"]
    if strategy == "greedy":
        assert st["batches"] > s1["batches"], "the batch was not split"
    assert vt == pytest.approx(v1, rel=1e-6)
    for a, b, c in zip(g1, gt, again[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(b, c)


def test_two_threads_train_two_models(model):
    """Each thread has its own current graph."""
    results, errors = {}, []

    def work(k):
        try:
            pc = dy.ParameterCollection()
            w = pc.parameters_from_numpy(np.full((4, 4), 0.1 * (k + 1)))
            for _ in range(200):
                dy.renew_cg()
                x = dy.inputVector(np.full(4, float(k + 1)))
                y = dy.sum_elems(w * x)
                results.setdefault(k, set()).add(round(y.value(), 4))
        except Exception as e:  # the main thread reports it
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert results == {0: {1.6}, 1: {6.4}}


def test_a_steady_step_makes_no_heap_call(model):
    def step():
        dy.renew_cg()
        loss = dy.esum([sentence_loss(model, s) for s in SENTENCES])
        loss.value()
        loss.backward()
        clear(model)

    for _ in range(4):
        step()
    before = dy.heap_calls()
    for _ in range(5):
        step()
    assert dy.heap_calls() == before


def test_a_million_nodes():
    dy.renew_cg()
    x = dy.inputVector([1.0])
    for _ in range(1_000_000):
        x = x + 2.0**-20  # exact in float32
    assert x.value() == 1.0 + 1_000_000 / 2**20
    dy.renew_cg()


def test_threads_may_train_one_model():
    """Backward passes and updates of several threads on shared parameters take turns; nothing is corrupted."""
    pc = dy.ParameterCollection()
    table = pc.add_lookup_parameters((5000, 8))
    w = pc.add_parameters((8, 8))
    trainer = dy.SimpleSGDTrainer(pc, 1e-4)
    turns = threading.Lock()
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(30):
                dy.renew_cg()
                rows = w * table.batch(rng.integers(0, 5000, size=600))
                dy.sum_batches(dy.sum_elems(dy.square(rows))).backward()
                with turns:
                    trainer.update()
        except Exception as e:  # the main thread reports it
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert np.isfinite(table.as_array()).all() and np.isfinite(w.as_array()).all()


def test_a_thread_looks_at_gradients_that_another_adds_to(tmp_path):
    """It sees what whole passes have added up, and may change it."""
    done = run_code(
        """
import threading
import numpy as np
import dynet_lite as dy

m = dy.ParameterCollection()
W, E = m.add_parameters((600, 1000)), m.add_lookup_parameters((4000, 300))

def work():
    rng = np.random.default_rng(1)
    for _ in range(60):
        dy.renew_cg()
        rows = E.batch(rng.integers(0, 4000, 3000).tolist())
        (dy.sum_elems(dy.sum_batches(rows)) + dy.sum_elems(W * 1.0)).backward()

thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    assert np.unique(W.grad_as_array()).size == 1
    assert E.grad_as_array().sum() % (3000 * 300) == 0
    m.gradient_l2_norm(), W.scale_gradient(1.0), E.scale_gradient(1.0)
assert (W.grad_as_array() == 60).all() and E.grad_as_array().sum() == 60 * 3000 * 300
E.set_rows_grad([7, 5], np.ones((2, 300)))
assert E._row_grads()[0].tolist() == [7, 5] and E.grad_as_array().sum() == 600
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_recalculate_reads_changed_rows():
    pc = dy.ParameterCollection()
    table = pc.add_lookup_parameters((4, 2), init=1.0)
    dy.renew_cg()
    loss = dy.sum_batches(dy.sum_elems(dy.square(table.batch([2, 3])))) + dy.squared_norm(table[1])
    assert loss.value() == 6.0
    loss.backward()
    dy.SimpleSGDTrainer(pc, 0.5).update()
    assert loss.value(recalculate=True) == 0.0


# ---- nodes inside cells -----------------------------------------------------------------------------------------------


def test_a_sum_inside_a_cell_is_right_or_refused() -> None:
    """The gates of an LSTM lie over their sums, unless somebody has asked for these by number."""
    builder = dy.VanillaLSTMBuilder(1, 2, 3, dy.ParameterCollection())
    x = np.array([0.5, -0.25])
    wx, _, b = (p.npvalue() for p in builder.get_parameters()[0])
    sums = wx @ x + b

    def chain() -> tuple[dy.Expression, list[int]]:
        dy.renew_cg()
        state = builder.initial_state()
        for _ in range(3):
            state = state.add_input(dy.inputVector(x))
        inner = [number for number, what, *_ in dy.cg().nodes() if what.startswith("affine_transform")]
        assert len(inner) == 3
        return state.output(), inner

    output, inner = chain()
    wanted = output.npvalue()
    for number in inner:
        with pytest.raises(ValueError, match="gone"):
            dy.cg().expression(number)
    dy.dump_cg(os.devnull)

    output, inner = chain()
    asked = [dy.cg().expression(number) for number in inner]
    np.testing.assert_array_equal(output.npvalue(), wanted)
    for one in asked:
        np.testing.assert_allclose(one.npvalue(), sums, rtol=1e-6)

    output, inner = chain()
    one = dy.cg().expression(inner[1])  # the others lie where they lay
    np.testing.assert_array_equal(output.npvalue(), wanted)
    np.testing.assert_allclose(one.npvalue(), sums, rtol=1e-6)
    dy.sum_elems(output).backward()
