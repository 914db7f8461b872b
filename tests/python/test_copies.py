"""Pickle and deepcopy of collections, parameters, all builders and all trainers: equal, apart from the original, in one piece."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.builders.part import Part

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "pickle protocol 2": lambda x: pickle.loads(pickle.dumps(x, 2)),
    "deepcopy": copy.deepcopy,
}
copies = pytest.mark.parametrize("how", COPIES)


def last(builder: Any, xs: list[Any]) -> Any:
    return builder.initial_state().transduce(xs)[-1]


def through(builder: Any, xs: list[Any]) -> Any:
    return builder.transduce(xs)[0]


def tree(builder: Any, xs: list[Any]) -> Any:
    leaves = [builder.node(x) for x in xs[1:3]]
    top = builder.node(xs[0], leaves)
    return top.output() if isinstance(top, dy.TreeNode) else top


def numbered(builder: Any, xs: list[Any]) -> Any:
    builder.set_num_elements(3)
    for k in (1, 2):
        builder.add_input(k, [], xs[k])
    return builder.add_input(0, [1, 2], xs[0])


def label(builder: Any, xs: list[Any]) -> Any:
    return builder.neg_log_softmax(xs[0], 1) + builder.neg_log_softmax(xs[1], 2, update=False)


WORDS = {"a": 0, "b": 1, "c": 2}


def shared_layers(m: Any) -> Any:
    return dy.BiRNNBuilder(1, 4, 4, m, None, [(dy.GRUBuilder(1, 4, 2, m), dy.LSTMBuilder(1, 4, 2, m))])


def settled(builder: Any, call: Callable[[Any], Any]) -> Any:
    call(builder)
    return builder


# How each is made, and what it computes from four vectors {4}.
BUILDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, list[Any]], Any]]] = {
    "SimpleRNNBuilder": (lambda m: dy.SimpleRNNBuilder(2, 4, 3, m), last),
    "GRUBuilder": (lambda m: dy.GRUBuilder(2, 4, 3, m), last),
    "VanillaLSTMBuilder": (lambda m: dy.VanillaLSTMBuilder(2, 4, 3, m, forget_bias=0.5), last),
    "VanillaLSTMBuilder, normed": (lambda m: dy.VanillaLSTMBuilder(2, 4, 3, m, True), last),
    "LSTMBuilder": (lambda m: dy.LSTMBuilder(1, 4, 3, m), last),
    "CompactVanillaLSTMBuilder": (lambda m: dy.CompactVanillaLSTMBuilder(2, 4, 3, m), last),
    "CoupledLSTMBuilder": (lambda m: dy.CoupledLSTMBuilder(2, 4, 3, m), last),
    "FastLSTMBuilder": (lambda m: dy.FastLSTMBuilder(2, 4, 3, m), last),
    "SparseLSTMBuilder": (lambda m: settled(dy.SparseLSTMBuilder(2, 4, 3, m), lambda b: b.set_sparsity(0.5)), last),
    "BiRNNBuilder": (lambda m: dy.BiRNNBuilder(2, 4, 6, m, dy.LSTMBuilder), through),
    "BiRNNBuilder of given layers": (shared_layers, through),
    "NaryTreeLSTMBuilder": (lambda m: dy.NaryTreeLSTMBuilder(2, 2, 4, 3, m), tree),
    "ChildSumTreeLSTMBuilder": (lambda m: dy.ChildSumTreeLSTMBuilder(1, 4, 3, m, 1.0), numbered),
    "UnidirectionalTreeLSTMBuilder": (lambda m: dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, m), tree),
    "BidirectionalTreeLSTMBuilder": (lambda m: dy.BidirectionalTreeLSTMBuilder(1, 4, 4, m), numbered),
    "StandardSoftmaxBuilder": (lambda m: dy.StandardSoftmaxBuilder(4, 3, m), label),
    "ClassFactoredSoftmaxBuilder": (
        lambda m: dy.ClassFactoredSoftmaxBuilder(4, ["A a", "A b", "B c"], WORDS, m),
        label,
    ),
    "HierarchicalSoftmaxBuilder": (
        lambda m: dy.HierarchicalSoftmaxBuilder(4, ["0 0\ta", "0 1\tb", "1\tc"], WORDS, m),
        label,
    ),
}
builders = pytest.mark.parametrize("name", BUILDERS)
TRAINERS = [
    name for name in dy.__all__ if inspect.isclass(getattr(dy, name)) and issubclass(getattr(dy, name), dy.Trainer)
    and name != "Trainer"
]  # fmt: skip


def test_all_builders_and_trainers_are_here() -> None:
    ours = {name for name in dy.__all__ if inspect.isclass(getattr(dy, name)) and issubclass(getattr(dy, name), Part)}
    assert ours - {"SoftmaxBuilder"} <= {name.split(" ")[0].rstrip(",") for name in BUILDERS}
    assert {"AdamTrainer", "CyclicalSGDTrainer", "EGTrainer"} <= set(TRAINERS)


def inputs(scale: float = 1.0) -> list[Any]:
    return [dy.inputTensor(np.sin(np.arange(4) * (k + 1)) * scale) for k in range(4)]


def output(builder: Any, use: Any) -> Any:
    dy.renew_cg()
    return use(builder, inputs()).npvalue()


def train(model: Any, builder: Any, use: Any, trainer: Any, steps: int = 2) -> None:
    for k in range(steps):
        dy.renew_cg()
        dy.sum_elems(dy.square(use(builder, inputs(1.0 + k)) - 0.3)).backward()
        trainer.update()


def values(model: Any) -> list[Any]:
    return [p._values().tolist() for p in model._all]


@copies
@builders
def test_builders(name: str, how: str) -> None:
    make, use = BUILDERS[name]
    m = dy.ParameterCollection()
    builder = make(m)
    before = output(builder, use)  # the builder holds nodes of a graph when it is copied
    m2, builder2 = COPIES[how]((m, builder))
    assert type(builder2) is type(builder) and builder2 is not builder and values(m2) == values(m)
    assert [p.name() for p in m2._all] == [p.name() for p in m._all]
    np.testing.assert_array_equal(output(builder2, use), before)

    # Collection and builder still belong together: what trains the one changes the other.
    trainer, trainer2 = dy.SimpleSGDTrainer(m), dy.SimpleSGDTrainer(m2)
    train(m2, builder2, use, trainer2)
    assert (output(builder2, use) != before).any()
    np.testing.assert_array_equal(output(builder, use), before)
    assert builder2.param_collection()._root() is m2

    # And the copy does exactly what the original does.
    train(m, builder, use, trainer)
    assert values(m2) == values(m)
    np.testing.assert_array_equal(output(builder2, use), output(builder, use))


@builders
def test_a_builder_alone(name: str) -> None:
    """It takes its collections along; the original may go."""
    make, use = BUILDERS[name]
    m = dy.ParameterCollection()
    builder = make(m)
    before, again = output(builder, use), pickle.loads(pickle.dumps(builder))
    del m, builder
    gc.collect()
    np.testing.assert_array_equal(output(again, use), before)
    root = again.param_collection()._root()
    train(root, again, use, dy.AdamTrainer(root, 0.1))
    assert (output(again, use) != before).any()


@builders
def test_a_builder_goes_with_its_last_reference(name: str) -> None:
    """Without the garbage collector, which may come late; also after it was used and copied."""
    make, use = BUILDERS[name]
    gc.disable()
    try:
        m = dy.ParameterCollection()
        builder, trainer = make(m), dy.AdamTrainer(m)
        train(m, builder, use, trainer)
        m2, builder2 = copy.deepcopy((m, builder))
        gone = [weakref.ref(p) for p in (*m._all, *m2._all)]
        dy.renew_cg()
        del m, m2, builder, builder2, trainer
        assert [r() for r in gone] == [None] * len(gone)
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["VanillaLSTMBuilder", "CoupledLSTMBuilder", "GRUBuilder", "BiRNNBuilder"])
def test_builders_keep_their_dropout(name: str) -> None:
    make, use = BUILDERS[name]
    builder = make(dy.ParameterCollection())
    builder.set_dropout(0.5)
    again = copy.deepcopy(builder)
    outs = []
    for b in (builder, again, again):
        dy.reset_random_seed(len(outs) // 2)
        outs.append(output(b, use))
    np.testing.assert_array_equal(outs[0], outs[1])
    assert (outs[2] != outs[1]).any()


@copies
@pytest.mark.parametrize("name", TRAINERS)
def test_trainers(name: str, how: str) -> None:
    make, use = BUILDERS["VanillaLSTMBuilder"]
    m = dy.ParameterCollection()
    builder, table = make(m), m.add_lookup_parameters((3, 2))
    if name == "EGTrainer":
        for p in m._all:
            positive = np.abs(p.as_array()) + 0.1
            (p.init_from_array if p is table else p.set_value)(positive / positive.sum())
    trainer = getattr(dy, name)(m)
    trainer.learning_rate *= 0.5
    trainer.set_clip_threshold(0.25)
    trainer.set_sparse_updates(False)
    train(m, builder, use, trainer, 3)
    table.set_rows_grad([1], [[1, 2]])
    trainer.update()
    m2, builder2, trainer2 = COPIES[how]((m, builder, trainer))
    assert trainer2.model is m2 and type(trainer2) is type(trainer) and repr(trainer2) == repr(trainer)
    assert trainer2.get_clip_threshold() == 0.25
    assert repr(trainer2.state_dict()) == repr(trainer.state_dict())
    train(m2, builder2, use, trainer2)
    assert values(m2) != values(m)
    train(m, builder, use, trainer)
    assert values(m2) == values(m)
    assert repr(trainer2.state_dict()) == repr(trainer.state_dict())
    alone = COPIES[how](trainer)
    assert alone.model is not m and values(alone.model) == values(m)
    assert repr(alone.state_dict()) == repr(trainer.state_dict())


@copies
def test_a_tree_of_collections(how: str) -> None:
    m = dy.ParameterCollection()
    s = m.add_subcollection("s")
    deep = s.add_subcollection("deep")
    p, t, q = deep.add_parameters((2, 3)), s.add_lookup_parameters((4, 2, 3)), m.add_parameters(1)
    m2, s2, deep2 = COPIES[how]((m, s, deep))
    assert [x.name() for x in m2._all] == [p.name(), t.name(), q.name()] == ["/s/deep/_0", "/s/_0", "/_0"]
    assert s2._all == m2._all[:2] and deep2._all == m2._all[:1] and deep2._parent is s2 and s2._parent is m2
    new = deep2.add_parameters(5)
    assert m2._all[-1] is new is s2._all[-1] and len(m._all) == 3
    np.testing.assert_array_equal(s2._all[1].as_array(), t.as_array())
    only = COPIES[how](deep)
    assert values(only._root()) == values(m) and only._all[0].name() == p.name()


@copies
def test_parameters_are_shared_as_before(how: str) -> None:
    m = dy.ParameterCollection()
    p, t = m.add_parameters((3, 4)), m.add_lookup_parameters((5, 4))
    t.set_updated(False)
    held = COPIES[how]({"a": p, "b": [p, t], "m": m})
    assert held["a"] is held["b"][0] is held["m"]._all[0] and held["b"][1] is held["m"]._all[1]
    assert held["a"] is not p and not held["b"][1].is_updated()
    dy.renew_cg()
    loss = dy.sum_elems(held["a"] * held["b"][1][2])
    loss.backward()
    assert held["a"].grad_as_array().any() and not p.grad_as_array().any()
    dy.SimpleSGDTrainer(held["m"]).update()
    assert (held["a"].as_array() != p.as_array()).any()


class Tagger(dy.ParameterCollection):
    """As some programs have it: a collection that holds all that belongs to it, its trainer too."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = dy.VanillaLSTMBuilder(1, 4, 3, self)
        self.trainer = dy.AdamTrainer(self, 0.1)
        self.history: list[float] = []


@copies
def test_a_model_that_refers_to_its_trainer(how: str) -> None:
    a = Tagger()
    train(a, a.lstm, last, a.trainer)
    for thing in (a, a.trainer, a.lstm):
        copied = COPIES[how](thing)
        b = copied if thing is a else copied.model if thing is a.trainer else copied.param_collection()._root()
        assert type(b) is Tagger and b.trainer.model is b and b.lstm.param_collection()._parent is b
        assert values(b) == values(a)
        before = values(a)
        train(b, b.lstm, last, b.trainer)
        assert values(a) == before != values(b)
        twin = COPIES[how](a)
        train(twin, twin.lstm, last, twin.trainer)
        assert values(twin) == values(b)


def test_what_belongs_to_a_graph_is_not_copied() -> None:
    m = dy.ParameterCollection()
    p, lstm = m.add_parameters(4), dy.LSTMBuilder(1, 4, 3, m)
    dy.renew_cg()
    state = lstm.initial_state().add_input(p)
    for thing in (dy.tanh(p), state, state.output(), dy.cg(), dy.inputVector([1, 2])):
        for call in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="a part of"):
                call(thing)


@pytest.mark.parametrize("how", [copy.deepcopy, pickle.dumps])
def test_a_state_cannot_be_pickled(how):
    dy.renew_cg()
    state = dy.LSTMBuilder(1, 3, 3, dy.ParameterCollection()).initial_state().add_input(dy.inputVector([1, 2, 3]))
    with pytest.raises(TypeError, match=r"^\[RNNState\] a state is a part of a graph"):
        how(state)
