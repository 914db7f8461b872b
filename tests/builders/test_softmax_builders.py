"""The softmax builders: against formulas and real DyNet, batches, batching, drawing, files, frozen uses, errors."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite import config

IN = 4
WORDS = {"the": 0, "a": 1, "dog": 2, "run": 3, "go": 4, "sit": 5, "cat": 6, "of": 7}
CLASSES = ["A the 10", "B dog 4", "A a 5", "C run 1", "C\tgo 2", "", "C sit 3", "B cat", "D of 9"]
TREE = ["0 0\tthe 3", "0 0\ta", "0 0\tof", "0 1\trun 2", "1 0\tgo", "1 0\tsit", "1 1 0\tdog", "1 1 1 1\tcat"]
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "standard": lambda pc: dy.StandardSoftmaxBuilder(IN, 8, pc),
    "standard-no-bias": lambda pc: dy.StandardSoftmaxBuilder(IN, 8, pc, bias=False),
    "class-factored": lambda pc: dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, WORDS, pc),
    "class-factored-no-bias": lambda pc: dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, WORDS, pc, False),
    "hierarchical": lambda pc: dy.HierarchicalSoftmaxBuilder(IN, TREE, WORDS, pc),
}


@pytest.fixture(params=BUILDERS)
def builder(request: pytest.FixtureRequest) -> Any:
    dy.renew_cg()
    pc = dy.ParameterCollection()
    made = BUILDERS[request.param](pc)
    rng = np.random.default_rng(5)
    for p in pc.parameters_list():
        p.set_value(rng.uniform(-1, 1, p.shape()))
    return made


def numbers(batch: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((IN, batch))


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max())
    return e / e.sum()


# ---- values ----------------------------------------------------------------------------------------------------------


def test_losses_are_those_of_the_distribution(builder: Any) -> None:
    x = dy.inputVector(numbers(1)[:, 0])
    full = builder.full_log_distribution(x).npvalue()
    assert full.shape == (8,) and np.exp(full).sum() == pytest.approx(1)
    given = [builder.neg_log_softmax(x, c).value() for c in range(8)]
    np.testing.assert_allclose(given, -full, rtol=1e-5)
    np.testing.assert_allclose(np.log(softmax(builder.full_logits(x).npvalue())), full, rtol=1e-4)


def test_mini_batches(builder: Any) -> None:
    a, labels = numbers(6), [3, 0, 2, 3, 7, 1]
    x = dy.inputTensor(a, batched=True)
    alone = [builder.neg_log_softmax(dy.inputVector(a[:, i]), c).value() for i, c in enumerate(labels)]
    loss = builder.neg_log_softmax_batch(x, labels)
    assert loss.dim() == ((1,), 6)
    np.testing.assert_allclose(loss.npvalue().ravel(), alone, rtol=1e-5)
    full = builder.full_log_distribution(x).npvalue()
    np.testing.assert_allclose([-full[c, i] for i, c in enumerate(labels)], alone, rtol=1e-5)
    one = builder.neg_log_softmax_batch(dy.inputVector(a[:, 0]), [3])
    assert one.value() == pytest.approx(alone[0], rel=1e-5)


def test_class_factored_formula() -> None:
    dy.renew_cg()
    s = dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, WORDS, dy.ParameterCollection())
    w, b, wa, ba, wb, bb, wc, bc = (p.as_array() for p in s.get_parameters())
    x = numbers(1)[:, 0]
    e = dy.inputVector(x)
    top, inside = softmax(w @ x + b), [softmax(wa @ x + ba), softmax(wb @ x + bb), softmax(wc @ x + bc), [1.0]]
    p = [top[0] * inside[0][0], top[0] * inside[0][1], top[1] * inside[1][0], top[2] * inside[2][0],
         top[2] * inside[2][1], top[2] * inside[2][2], top[1] * inside[1][1], top[3]]  # fmt: skip
    np.testing.assert_allclose(np.exp(s.full_log_distribution(e).npvalue()), p, rtol=1e-5)
    np.testing.assert_allclose(np.exp(s.class_log_distribution(e).npvalue()), top, rtol=1e-5)
    np.testing.assert_allclose(s.class_logits(e).npvalue(), w @ x + b, rtol=1e-5)
    np.testing.assert_allclose(np.exp(s.subclass_log_distribution(e, 2).npvalue()), inside[2], rtol=1e-5)
    np.testing.assert_allclose(s.subclass_logits(e, 1).npvalue(), wb @ x + bb, rtol=1e-5)
    assert s.subclass_logits(e, 3).value() == 0


def test_hierarchical_formula() -> None:
    """Nodes in DyNet's order: root, 0, 0 0, 1, 1 0, 1 1; those with one way on have no parameters."""
    dy.renew_cg()
    s = dy.HierarchicalSoftmaxBuilder(IN, TREE, WORDS, dy.ParameterCollection())
    values = [p.as_array() for p in s.get_parameters()]
    assert [v.shape for v in values[::2]] == [(1, IN), (1, IN), (3, IN), (1, IN), (1, IN), (1, IN)]
    x = numbers(1)[:, 0]
    scores = [w @ x + b for w, b in zip(values[::2], values[1::2], strict=True)]
    root, left, low, right, right_low, deep = [softmax(v) if len(v) > 2 else 1 / (1 + np.exp(-v[0])) for v in scores]
    p = [root * left * low[0], root * left * low[1], (1 - root) * (1 - right) * deep, root * (1 - left),
         (1 - root) * right * right_low, (1 - root) * right * (1 - right_low), (1 - root) * (1 - right) * (1 - deep),
         root * left * low[2]]  # fmt: skip
    np.testing.assert_allclose(np.exp(s.full_log_distribution(dy.inputVector(x)).npvalue()), p, rtol=1e-5)


def test_gradients(builder: Any) -> None:
    a = numbers(3)

    def loss() -> Any:
        x = dy.inputTensor(a, batched=True)
        full = builder.full_log_distribution(dy.inputVector(a[:, 0]))
        return dy.sum_batches(builder.neg_log_softmax_batch(x, [2, 0, 4])) - dy.pick(full, 3)

    assert dy.gradcheck(loss, *builder.get_parameters()) < 1e-2


# ---- updates -----------------------------------------------------------------------------------------------------------


def test_update_may_differ_from_call_to_call(builder: Any) -> None:
    x = dy.inputVector(numbers(1)[:, 0])
    first, second, third = (builder.neg_log_softmax(x, 2, update=u) for u in (False, True, False))
    (first + third).backward()
    assert all(not p.grad_as_array().any() for p in builder.get_parameters())
    second.backward()
    assert any(p.grad_as_array().any() for p in builder.get_parameters())


def test_frozen_uses_are_one_batch() -> None:
    s = dy.StandardSoftmaxBuilder(IN, 8, dy.ParameterCollection())
    dy.renew_cg(autobatching=True)
    dy.esum([s.neg_log_softmax(dy.inputVector(numbers(1, i)[:, 0]), i, False) for i in range(6)]).value()
    assert dy.stats()["batches"] == 2


def test_batching() -> None:
    """The class part is one batch whatever the words are; inside, a class is one; outcomes of one tree node are one."""
    dy.renew_cg(autobatching=True)
    s = dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, WORDS, dy.ParameterCollection())
    losses = [s.neg_log_softmax(dy.inputVector(numbers(1, i)[:, 0]), c) for i, c in enumerate([0, 1, 0, 1, 2, 6, 2])]
    dy.esum(losses).value()
    assert dy.stats()["batches"] <= 1 + 1 + 2 + 1 + 1 + 1  # scores and picks; the two classes have two words each
    dy.renew_cg(autobatching=True)
    h = dy.HierarchicalSoftmaxBuilder(IN, [f"{b}\t{w}" for w, b in zip(WORDS, ("0 0", "0 0", "0 1", "0 1", "1 0", "1 0",
                                           "1 1", "1 1"), strict=True)], WORDS, dy.ParameterCollection())  # fmt: skip
    dy.esum([h.neg_log_softmax(dy.inputVector(numbers(1, i)[:, 0]), i % 8) for i in range(40)]).value()
    assert dy.stats()["batches"] <= 7 + 5  # seven nodes of the tree; sign, log_sigmoid, minus, two sums


# ---- drawing -------------------------------------------------------------------------------------------------------------


def test_sample_follows_the_distribution(builder: Any) -> None:
    dy.reset_random_seed(3)
    a = np.repeat(numbers(1), 2000, axis=1)
    drawn = Counter(builder.sample(dy.inputTensor(a, batched=True)))
    p = np.exp(builder.full_log_distribution(dy.inputVector(a[:, 0])).npvalue())
    for word in range(8):
        assert drawn[word] / 2000 == pytest.approx(p[word], abs=4 * np.sqrt(p[word] * (1 - p[word]) / 2000) + 1e-9)
    one = builder.sample(dy.inputVector(a[:, 0]))
    assert isinstance(one, int) and 0 <= one < 8


def test_sample_gives_nothing_impossible_and_is_repeated_by_a_seed(builder: Any) -> None:
    far = 1e4 * np.sign(numbers(1))
    p = np.exp(builder.full_log_distribution(dy.inputVector(far[:, 0])).npvalue())
    drawn = []
    for _ in range(2):
        dy.reset_random_seed(5)
        dy.renew_cg()
        x = dy.inputVector(far[:, 0])
        drawn.append([builder.sample(x) for _ in range(60)])
    assert drawn[0] == drawn[1] and all(p[word] > 0 for word in drawn[0])


def test_sample_of_no_distribution_is_an_error(builder: Any) -> None:
    with pytest.raises(ValueError, match="there is no distribution"):
        builder.sample(dy.inputVector([np.nan] * builder.input_dim))


# ---- files and copies ------------------------------------------------------------------------------------------------------


def test_save_load_pickle_deepcopy(builder: Any, tmp_path: Path) -> None:
    a = numbers(1)[:, 0]
    builder.neg_log_softmax(dy.inputVector(a), 1, update=False)
    wanted = builder.full_log_distribution(dy.inputVector(a)).npvalue()
    dy.save(tmp_path / "m", [builder])
    (loaded,) = dy.load(tmp_path / "m", dy.ParameterCollection())
    for other in (loaded, pickle.loads(pickle.dumps(builder)), copy.deepcopy(builder)):
        assert type(other) is type(builder) and repr(other) == repr(builder)
        dy.renew_cg()
        np.testing.assert_allclose(other.full_log_distribution(a).npvalue(), wanted, rtol=1e-6)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "clusters.txt"
    path.write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
    pc = dy.ParameterCollection()
    a, b = (dy.ClassFactoredSoftmaxBuilder(IN, source, WORDS, pc) for source in (str(path), CLASSES))
    assert a.spec == b.spec
    assert a.param_collection().name() == "/class-factored-softmax-builder/"
    assert b.param_collection().name() == "/class-factored-softmax-builder_1/"
    d = dy.Dict()
    for word in WORDS:
        d.convert(word)
    assert dy.HierarchicalSoftmaxBuilder(IN, TREE, d, pc).spec[1][0] == (["0", "0"], 0)


def test_words_in_no_class() -> None:
    """DyNet's distribution has -10000 for them, and no loss."""
    ids = {"x": 0, "a": 1, "b": 2, "y": 3}
    x = numbers(1)[:, 0]
    for s in (
        dy.ClassFactoredSoftmaxBuilder(IN, ["A a", "A b"], ids, dy.ParameterCollection()),
        dy.HierarchicalSoftmaxBuilder(IN, ["0\ta", "1\tb"], ids, dy.ParameterCollection()),
    ):
        full = s.full_log_distribution(x).npvalue()
        assert full.shape == (3,) and full[0] == -10000 and np.exp(full).sum() == pytest.approx(1)
        for word in (0, 3, -1):
            with pytest.raises(IndexError, match="in no class"):
                s.neg_log_softmax(x, word)


def test_wrong_arguments(tmp_path: Path) -> None:
    pc = dy.ParameterCollection()
    with pytest.raises(ValueError, match="No such file"):
        dy.ClassFactoredSoftmaxBuilder(IN, str(tmp_path / "none"), WORDS, pc)
    for lines in (["A the", "A"], ["A the", "B the"], []):
        with pytest.raises(dy.DataError):
            dy.ClassFactoredSoftmaxBuilder(IN, lines, WORDS, pc)
    for lines in (["0 the"], ["0\tthe", "0 1\ta"], ["\tthe"]):
        with pytest.raises(dy.DataError):
            dy.HierarchicalSoftmaxBuilder(IN, lines, WORDS, pc)
    with pytest.raises(RuntimeError, match="not in the dictionary"):  # as DyNet's frozen Dict
        dy.ClassFactoredSoftmaxBuilder(IN, ["A unheard"], WORDS, pc)
    with pytest.raises(ValueError, match="unique ids"):
        dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, {"the": 0, "a": 2}, pc)
    with pytest.raises(TypeError, match="base class"):
        dy.SoftmaxBuilder(IN, pc)
    assert not pc.parameters_list()
    s = dy.StandardSoftmaxBuilder(IN, 3, pc)
    with pytest.raises(ValueError, match="one class per batch element"):
        s.neg_log_softmax_batch(dy.inputVector([0] * IN), [1, 2])
    with pytest.raises(IndexError):
        s.neg_log_softmax(dy.inputVector([0] * IN), 3)
    with pytest.raises(IndexError):
        dy.ClassFactoredSoftmaxBuilder(IN, CLASSES, WORDS, pc).subclass_logits(dy.inputVector([0] * IN), 4)


# ---- against DyNet ---------------------------------------------------------------------------------------------------------

PROGRAM = """
def program(dy, data):
    pc = dy.ParameterCollection()
    made = [dy.StandardSoftmaxBuilder(4, 8, pc), dy.StandardSoftmaxBuilder(4, 8, pc, False),
            dy.ClassFactoredSoftmaxBuilder(4, data["file"], data["words"], pc),
            dy.ClassFactoredSoftmaxBuilder(4, data["file"], data["words"], pc, False)]
    rng = np.random.RandomState(4)
    out = []
    for p in pc.parameters_list():
        p.set_value(rng.uniform(-1, 1, p.shape()))
        out += [p.name(), list(p.shape())]
    a = rng.uniform(-1, 1, (4, 5))
    trainer = dy.SimpleSGDTrainer(pc, 0.5)
    for k, s in enumerate(made):
        dy.renew_cg()
        x, xs = dy.inputVector(a[:, 0]), dy.inputTensor(a, batched=True)
        losses = [s.neg_log_softmax(x, c) for c in range(8)]
        out.append(dy.concatenate(losses).npvalue().tolist())
        out.append(s.neg_log_softmax_batch(xs, [3, 0, 2, 3, 7]).npvalue().ravel().tolist())
        if k < 2:
            out += [s.full_logits(x).npvalue().tolist(), s.full_log_distribution(x).npvalue().tolist()]
        else:
            out += [s.class_logits(x).npvalue().tolist(), s.class_log_distribution(x).npvalue().tolist()]
            out += [s.subclass_logits(x, 2).npvalue().tolist(), s.subclass_log_distribution(x, 2).npvalue().tolist()]
        loss = dy.esum(losses) + dy.sum_batches(s.neg_log_softmax_batch(xs, [1, 0, 2, 3, 7]))
        loss.backward()
        out.append(s.param_collection().name())
        out += [p.grad_as_array().tolist() for p in s.param_collection().parameters_list()]
        trainer.update()
        out += [p.as_array().tolist() for p in s.param_collection().parameters_list()]
    return out
"""


@needs_dynet
def test_against_dynet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, shapes, losses, scores, gradients and updated weights. (full_logits of class factors is wrong in DyNet.)"""
    path = tmp_path / "clusters.txt"
    path.write_text("\n".join(line for line in CLASSES if line) + "\n", encoding="utf-8")
    data = {"file": str(path), "words": WORDS}
    theirs = run(PROGRAM + "\nout = program(dy, data)\n", data)
    monkeypatch.setattr(config, "is_dynet", lambda: True)  # whose parameters have no names
    scope: dict[str, Any] = {"np": np}
    exec(PROGRAM, scope)
    ours = scope["program"](dy, data)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        if isinstance(a, str):
            assert a == b
        else:
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
