"""Old spellings: those that can work do, with one warning each at the program's line; the others say what to write."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.compat import old_names


@pytest.fixture(autouse=True)
def nothing_warned_yet() -> Iterator[None]:
    before = set(old_names._warned)
    old_names._warned.clear()
    yield
    old_names._warned.clear()
    old_names._warned.update(before)


def warns_once(call):  # type: ignore[no-untyped-def]
    """What the call gives; it warns the first time, in this file, and not again."""
    with pytest.warns(UserWarning, match="old name") as caught:
        out = call()
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()
    return out


def test_functions() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = dy.inputTensor(a)
    assert warns_once(lambda: dy.cwise_multiply(x, x)).npvalue().tolist() == (a * a).tolist()
    assert warns_once(lambda: dy.sum_dims(x, [1])).value() == a.sum(1).tolist()
    assert dy.sum_cols(x).value() == a.sum(1).tolist()
    np.testing.assert_allclose(warns_once(lambda: dy.sigmoid(x)).npvalue(), 1 / (1 + np.exp(-a)), rtol=1e-6)


@pytest.mark.parametrize("name", sorted(old_names.GONE))
def test_functions_that_are_gone(name: str) -> None:
    with pytest.raises(AttributeError, match="write"):
        getattr(dy, name)("file")


def test_other_names_are_plain_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        _ = dy.nonsense
    assert not hasattr(dy, "__path_that_is_not__")
    for removed in (dy.matInput, dy.inputMatrix):
        with pytest.raises(DeprecationWarning, match="inputTensor"):
            removed(2, 3)


def test_trainer_keywords() -> None:
    m = dy.ParameterCollection()
    assert warns_once(lambda: dy.SimpleSGDTrainer(m, e0=0.3)).learning_rate == 0.3
    assert dy.AdamTrainer(m, e0=0.2).learning_rate == 0.2
    assert warns_once(lambda: dy.SimpleSGDTrainer(m, 0.3, edecay=0.05)).learning_rate == 0.3
    warns_once(lambda: dy.AdamTrainer(m, lam=1e-6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dy.MomentumSGDTrainer(m, edecay=0, lam=0.0)
    with pytest.raises(TypeError):
        dy.SimpleSGDTrainer(m, nonsense=1)
    with pytest.warns(UserWarning) if not _epoch_warned() else warnings.catch_warnings():
        dy.SimpleSGDTrainer(m).update_epoch()
        dy.SimpleSGDTrainer(m).update_epoch(1.0)
    for trainer in (dy.SimpleSGDTrainer(m), dy.CyclicalSGDTrainer(m)):
        trainer.update(1.0)
        with pytest.raises(ValueError, match=r"write \(loss \* 0.5\).backward\(\)"):
            trainer.update(0.5)
        assert trainer.updates == 1

    class Own(dy.SimpleSGDTrainer):
        def __init__(self, m: dy.ParameterCollection, extra: int, **keywords: float) -> None:
            super().__init__(m, **keywords)
            self.extra = extra

    assert Own(m, 3, e0=0.5).learning_rate == 0.5


def test_keywords_of_a_programs_own_trainer() -> None:
    class Own(dy.SimpleSGDTrainer):
        def __init__(self, m: dy.ParameterCollection, e0: float = 0.1, edecay: float = 0.0, lam: float = 0.0) -> None:
            super().__init__(m, e0)
            self.edecay, self.lam = edecay, lam

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = Own(dy.ParameterCollection(), e0=0.25, edecay=0.5, lam=0.125)
    assert (own.learning_rate, own.edecay, own.lam) == (0.25, 0.5, 0.125)


def _epoch_warned() -> bool:
    from dynet_lite import trainers

    return trainers._warned_epoch


def test_collections(tmp_path: Path) -> None:
    m = dy.Model()
    p = m.add_parameters((2, 3))
    m.save(tmp_path / "file")
    other = dy.Model()
    q = other.add_parameters((2, 3))
    warns_once(lambda: other.load(tmp_path / "file"))
    assert (q.as_array() == p.as_array()).all()
    warns_once(lambda: m.save_all(tmp_path / "all"))
    assert (tmp_path / "all").read_bytes() == (tmp_path / "file").read_bytes()
    warns_once(lambda: q.load_array(np.ones((2, 3))))
    assert q.as_array().sum() == 6
    e, rnn = m.add_lookup_parameters((4, 2)), dy.VanillaLSTMBuilder(1, 2, 3, m)
    warns_once(lambda: m.save(tmp_path / "objects", [rnn, e, p]))
    again = dy.Model()
    of_rnn, of_e, of_p = again.load(tmp_path / "objects") or []
    assert [q.shape() for q in of_rnn.param_collection().parameters_list()] == [(12, 2), (12, 3), (12,)]
    assert (of_e.as_array() == e.as_array()).all() and (of_p.as_array() == p.as_array()).all()
    found: list[Any] = []
    warns_once(lambda: found.extend(dy.Model.from_file(tmp_path / "objects")))
    collection, (_, _, of_p) = found[-2:]
    assert (of_p.as_array() == p.as_array()).all() and len(collection.parameters_list()) == 4
    with pytest.raises(TypeError, match="keep what"):
        m["W"]
    for add in (m.add_parameters, m.add_lookup_parameters):
        with pytest.raises(ValueError, match="the shape comes first"):
            add("W", (2, 3))


def half(x: dy.Expression) -> dy.Expression:
    return x / 2


with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    class Layer(dy.Saveable):
        def __init__(self, m: dy.ParameterCollection, act: object) -> None:
            super().__init__()
            self.act, self.W, self.size = act, m.add_parameters((2, 2)), 2

        def get_components(self) -> tuple[dy.Parameters, ...]:
            return (self.W,)

        def restore_components(self, components: list[dy.Parameters]) -> None:
            (self.W,) = components

    class Slots(dy.Saveable):
        __slots__ = ("W", "__secret", "size")

        def __init__(self, m: dy.ParameterCollection) -> None:
            self.W, self.size, self.__secret = m.add_parameters((2, 2)), 2, [3]
            self.ring: list[object] = [self.W, 4]
            self.ring.append(self.ring)

        def secret(self) -> list[int]:
            return self.__secret

        get_components = Layer.get_components  # type: ignore[assignment]
        restore_components = Layer.restore_components  # type: ignore[assignment]

    class OwnState(Layer):
        """Its state is what it says, without components; it has been told that it came back."""

        def __getstate__(self) -> object:
            return {"size": self.size, "all": [self.W, self.size]}

        def __setstate__(self, state: dict[str, object]) -> None:
            vars(self).update(state, back=True)

    class Network(dy.Saveable):
        def __init__(self, m: dy.ParameterCollection) -> None:
            self.words = {"a": 0, "b": 1}
            self.E, self.rnn = m.add_lookup_parameters((2, 2)), dy.GRUBuilder(1, 2, 2, m)
            self.layers = [Layer(m, dy.tanh), Layer(m, half)]
            self.bias = {"first": m.add_parameters(2), "last": 0.5}

        def __call__(self, text: str) -> dy.Expression:
            h = self.rnn.initial_state().transduce([self.E[self.words[c]] for c in text])[-1]
            for layer in self.layers:
                h = layer.act(layer.W * h)
            return h + self.bias["first"]

        def get_components(self) -> list[object]:
            return [self.E, self.rnn, *self.layers, self.bias["first"]]

        def restore_components(self, components: list[object]) -> None:
            self.E, self.rnn, *self.layers, self.bias["first"] = components


@pytest.mark.filterwarnings("ignore:.*old name")
def test_saveable(tmp_path: Path) -> None:
    """DyNet 1's base of classes: files hold its components and its other attributes, and its __init__() is not called."""
    m = dy.Model()
    network = Network(m)
    m.save(tmp_path / "network", [network, network.E])
    other = dy.Model()
    again, _ = other.load(tmp_path / "network") or []
    assert type(again) is Network and again.layers[0].act is dy.tanh and again.layers[1].size == 2
    assert again.bias["last"] == 0.5 and len(other.parameters_list()) == len(m.parameters_list())
    assert again("ab").value() == network("ab").value()
    dy.save(tmp_path / "layer", network.layers[0])
    (layer,) = dy.load(tmp_path / "layer", other)
    assert (layer.W.as_array() == network.layers[0].W.as_array()).all()
    network.layers[0].size = open  # type: ignore[assignment]
    with pytest.raises(ValueError, match=r"Network'>: its spec may hold"):
        m.save(tmp_path / "network", [network])


@pytest.mark.filterwarnings("ignore:.*old name")
def test_saveables_with_slots_rings_and_a_state_of_their_own(tmp_path: Path) -> None:
    m, other = dy.Model(), dy.Model()
    dy.save(tmp_path / "both", [Slots(m), OwnState(m, None)])
    slots, own = dy.load(tmp_path / "both", other)
    assert (slots.size, slots.secret()) == (2, [3])
    assert slots.ring[0] is None and slots.ring[1] == 4 and slots.ring[2] is slots.ring
    assert own.back and own.size == 2 and own.all == [None, 2]
    assert [p.as_array().tolist() for p in (slots.W, own.W)] == [p.as_array().tolist() for p in m.parameters_list()]
    assert [slots.W, own.W] == other.parameters_list()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
@pytest.mark.filterwarnings("ignore:.*old name")
def test_copies_of_saveables_have_their_components(copied: Any) -> None:
    m = dy.Model()
    network, slots = Network(m), Slots(m)
    again = copied(network)
    assert again("ab").value() == network("ab").value()
    assert again.bias["first"] is not network.bias["first"] and again.layers[0].W is not network.layers[0].W
    again = copied(slots)
    assert (again.W.as_array() == slots.W.as_array()).all() and again.secret() == [3]
    assert again.ring[0] is again.W and again.ring[2] is again.ring
    model, again = copied((m, network))  # what is copied together stays together
    assert again.E in model.lookup_parameters_list()


def test_saveables_that_are_not_complete(tmp_path: Path) -> None:
    def derived() -> type[dy.Saveable]:
        class Bare(dy.Saveable):
            pass

        return Bare

    bare = warns_once(derived)()
    with pytest.raises(NotImplementedError, match=r"\[Bare\] .*get_components"):
        dy.save(tmp_path / "file", [bare])
    with pytest.raises(NotImplementedError, match=r"\[Bare\] .*restore_components"):
        bare.restore_components([])


def test_names_of_2_that_are_called_old() -> None:
    """No warning for what DyNet 2 itself offers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = dy.Model()
        p = dy.parameter(m.add_parameters(2, init=1))
        total = 0.0
        for e in (p, dy.vecInput(2), dy.inputVector([1, 2]), dy.zeroes((2,))):
            total += dy.sum_elems(e)
        assert (1 - total * 2 + sum([total, total]) / 2).value() == 1 - 10 + 5
        assert dy.pickrange(dy.inputVector([1, 2, 3]), 1, 3).value() == [2, 3]


def test_parameter_without_update() -> None:
    """DyNet 1: parameter(p, update=False) is a constant."""
    m = dy.Model()
    p = m.add_parameters(2, init=1)
    for constant in (dy.parameter(p, update=False), dy.parameter(p, False)):
        (dy.dot_product(constant, dy.parameter(p, True)) + dy.sum_elems(dy.parameter(p, update=True))).backward()
        assert p.grad_as_array().tolist() == [2, 2]
        p.zero_gradient()
    assert dy.parameter(p, p) == [p, p]


def test_boxes() -> None:
    box = dy.FloatValue(2)
    box.set(3.5)
    assert box.get() == 3.5 and dy.FloatValue().get() == 0
    assert dy.UnsignedValue(3).get() == 3
    assert isinstance(dy.get_device_info("CPU"), dy.DeviceInfo)
    many = dy.FloatVectorValue([1, 2])
    assert many.get() == [1.0, 2.0] and many.size() == 2
    many.set([3])
    assert many.get() == [3.0] and dy.UnsignedVectorValue([1, 2]).get() == [1, 2]
    with pytest.raises(OverflowError):
        dy.UnsignedVectorValue([1, -2])


def test_graph_methods(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What DyNet's graph object offers, by number of node; and it is true even when it is empty."""
    g = dy.renew_cg()
    assert g and len(g) == 0
    x = dy.inputVector([1, 2])
    y = dy.sum_elems(x)
    last = len(g) - 1
    g.forward(last)
    g.inc_forward(last)
    assert g.forward_scalar(last) == g.inc_forward_scalar(last) == 3
    assert g.forward_vec(0) == g.inc_forward_vec(0) == [1, 2]
    g.backward(last, full=True)
    assert x.gradient().tolist() == [1, 1] and y.value() == 3
    g.print_graphviz()
    assert "digraph" in capfd.readouterr().err
    g.dump(str(tmp_path / "nodes"))
    assert "value" in (tmp_path / "nodes").read_text()
    with pytest.raises(IndexError):
        g.forward(last + 1)
