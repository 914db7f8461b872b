"""Checkpoints: a training that was stopped goes on to the bit; damaged and hostile files change nothing."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from real_dynet import python

import dynet_lite as dy
from dynet_lite import _core, packing, randomness

TRAINERS = [name for name in dir(dy) if name.endswith("Trainer") and name != "Trainer"]

# Four epochs: dropout of all kinds, several sentences a batch, shuffling, a falling learning rate, weight decay, an update
# for every second batch only (so that gradients are left over at the end of an epoch), a frozen weight.
PROGRAM = f"""
import hashlib, json, random, sys
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

TRAINERS = {TRAINERS!r}
DATA = [[(k * 7 + i * 3) % 20 for i in range(2 + k % 4)] for k in range(15)]

class Run:
    def __init__(self, name, seed):
        dy.reset_random_seed(seed)
        self.model = m = dy.ParameterCollection()
        self.words = m.add_lookup_parameters((20, 6), init="normal")
        self.lstm = dy.BiRNNBuilder(1, 6, 8, m, dy.VanillaLSTMBuilder)
        self.rnn = dy.CompactVanillaLSTMBuilder(1, 8, 4, m)
        self.rnn.set_weightnoise(0.1)
        self.W, self.frozen = m.add_parameters((5, 4)), m.add_parameters(5)
        if name == "EGTrainer":  # of distributions
            for p in m.parameters_list():
                p.set_value((np.abs(p.as_array()) + 0.1) / (np.abs(p.as_array()) + 0.1).sum())
            self.words.init_from_array(np.abs(self.words.as_array()))
        m.set_weight_decay(0.001)
        self.trainer = getattr(dy, name)(m)
        if what == "begin" and name in ("AdamTrainer", "SimpleSGDTrainer"):
            self.trainer.exponential_moving_average(0.9) if name[0] == "A" else self.trainer.cumulative_moving_average(2)
        self.shuffler, self.noise = random.Random(3), np.random.default_rng(4)
        self.batches, self.losses = 0, []

    def epoch(self, k):
        self.lstm.set_dropout(0.2)
        self.frozen.set_updated(k == 0)
        self.trainer.learning_rate *= 0.9
        order = DATA[:]
        self.shuffler.shuffle(order)
        for at in range(0, 15, 3):
            dy.renew_cg()
            losses = []
            for sentence in order[at : at + 3]:
                xs = [dy.noise(self.words[w], 0.01) + dy.inputTensor(self.noise.normal(size=6) * 0.1) for w in sentence]
                h = self.rnn.initial_state().transduce(self.lstm.transduce(xs))[-1]
                losses.append(dy.pickneglogsoftmax(self.W * dy.dropout(h, 0.3) + self.frozen, sentence[0] % 5))
            loss = dy.esum(losses)
            self.losses.append(loss.value())
            loss.backward()
            self.batches += 1
            if self.batches % 2 == 0:
                self.trainer.update()

    def digest(self):
        parts = [np.float64(self.losses).tobytes()]
        for p in [*self.model.parameters_list(), *self.model.lookup_parameters_list()]:
            parts += [p._values().tobytes(), p._grads().tobytes()]
        if self.trainer.moving_average() != "none":
            self.trainer.swap_params_to_moving_average()
            parts += [p._values().tobytes() for p in self.model.parameters_list()]
        parts.append(np.float64([dy.random_normal(3).npvalue(), self.noise.normal(size=3)]).tobytes())
        return hashlib.sha256(b"".join(parts)).hexdigest()

folder, what, threads = sys.argv[1:4]
dy.configure(threads=int(threads))
_core.settings.least_work = 0
out = {{}}
for number, name in enumerate(TRAINERS):
    if what == "begin":
        run = Run(name, number)
        for k in range(3):
            run.epoch(k)
        assert np.isfinite(run.losses).all(), name
        out[name] = run.digest()
    run = Run(name, number if what == "begin" else 99)
    generators = {{"shuffler": run.shuffler, "noise": run.noise}}
    file = f"{{folder}}/{{name}}"
    if what == "begin":
        run.epoch(0)
        dy.save_checkpoint(file, run.model, run.trainer, rng=generators,
                           config={{"batches": run.batches, "losses": run.losses}})
    else:
        config = dy.load_checkpoint(file, run.model, run.trainer, rng=generators).config
        run.batches, run.losses = config["batches"], config["losses"]
        for k in range(1, 3):
            run.epoch(k)
        out[name] = run.digest()
print(json.dumps(out))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_training_goes_on_in_another_process(threads: int, tmp_path: Path) -> None:
    results = []
    for what in ("begin", "go on"):
        done = python("-c", PROGRAM, str(tmp_path), what, str(threads), OPENBLAS_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    assert list(results[0]) == TRAINERS and len(set(results[0].values())) == len(TRAINERS)
    assert results[0] == results[1]


# ---- what is kept --------------------------------------------------------------------------------------------------


class Small:
    """A model with every sort of member, two trainers and two generators, after some updates."""

    def __init__(self, seed: int = 1, steps: int = 2) -> None:
        dy.reset_random_seed(seed)
        self.model = m = dy.ParameterCollection()
        self.sub = m.add_subcollection("s")
        self.w, self.table = m.add_parameters((2, 3), name="w"), self.sub.add_lookup_parameters((4, 2, 2), name="t")
        self.scalar, self.empty = self.sub.add_parameters(1), m.add_parameters((2, 0))
        self.lstm = dy.LSTMBuilder(1, 2, 3, m)
        m.set_weight_decay(0.01 * seed)
        self.trainers = {"all": dy.AdamTrainer(m, 0.01 * seed), "part": dy.SimpleSGDTrainer(self.sub)}
        self.rng = {"python": random.Random(seed), "numpy": np.random.default_rng(seed)}
        self.w.set_updated(seed == 1)
        for k in range(steps):
            self.w.set_grad(np.full((2, 3), k + 1.0))
            self.table.set_rows_grad([3, k % 3], np.ones((2, 2, 2)))
            self.trainers["all"].update()
        self.table.set_rows_grad([2, 0], np.full((2, 2, 2), seed))
        self.scalar.set_grad([seed])

    def save(self, path: Any, **options: Any) -> None:
        things = {"trainer": self.trainers, "rng": self.rng, "builders": {"lstm": self.lstm}, "config": {"n": [1, 2.5]}}
        dy.save_checkpoint(path, self.model, **{**things, **options})

    def load(self, path: Any) -> dy.Checkpoint:
        return dy.load_checkpoint(path, self.model, self.trainers, rng=self.rng, builders={"lstm": self.lstm})

    def everything(self) -> str:
        """All that a failed load must leave alone."""
        parts: list[Any] = [
            self.rng["python"].getstate(),
            self.rng["numpy"].bit_generator.state,
            _core.get_seed_state(),
        ]
        parts += [
            _core.cg().seed_state,
            self.model.get_weight_decay(),
            self.table._unsettled(),
            self.table._row_grads(),
        ]
        parts += [(p.name(), p.is_updated(), p._grads().tolist()) for p in self.model._all]
        parts += [p._values().tolist() for p in self.model.parameters_list()]
        return repr(parts) + repr([t.state_dict() for t in self.trainers.values()])


def test_everything_comes_back(tmp_path: Path) -> None:
    path, a = tmp_path / "c", Small()
    a.save(path)
    before = a.everything()
    assert os.listdir(tmp_path) == ["c"]
    b = Small(2, 5)
    assert b.everything() != before
    assert b.load(path).config == {"n": [1, 2.5]}
    _core.cg()
    assert b.everything() == before


def test_saving_is_not_noticed(tmp_path: Path) -> None:
    """Not even by rows that owe weight decay, which reading an array pays."""
    a = Small()
    before = a.everything()
    a.save(tmp_path / "c")
    assert a.everything() == before
    kept, decay = a.table._unsettled()
    file = dy.read_checkpoint(tmp_path / "c")
    assert decay is not None and (decay[1:] != decay[0]).any()
    assert (file.parameters["/s/t"] != kept).any()
    np.testing.assert_array_equal(file.parameters["/s/t"], a.table.as_array())


def test_values_alone(tmp_path: Path) -> None:
    """Without a trainer nothing of the training is touched."""
    path, a, b = tmp_path / "c", Small(), Small(2)
    a.save(path)
    seeds = _core.get_seed_state(), b.rng["python"].getstate()
    states = repr([t.state_dict() for t in b.trainers.values()])
    assert repr(dy.load_checkpoint(path, b.model)) == f"<checkpoint {path}: 7 parameters, 2 trainers, 1 builders>"
    for p, q in zip(a.model._all, b.model._all, strict=True):
        np.testing.assert_array_equal(p.as_array(), q.as_array())
        assert not q.grad_as_array().any()
    assert not b.w.is_updated() and b.model.get_weight_decay() == 0.02
    assert seeds == (_core.get_seed_state(), b.rng["python"].getstate())
    assert states == repr([t.state_dict() for t in b.trainers.values()])


def test_other_programs_read_the_arrays(tmp_path: Path) -> None:
    a = Small()
    a.save(tmp_path / "c", trainer=None)
    arrays = safetensors.numpy.load_file(tmp_path / "c")
    assert arrays.keys() == {
        "/w",
        "/_0",
        "/s/t",
        "/s/_0",
        *(f"/vanilla-lstm-builder/layer0/{k}" for k in ("Wx", "Wh", "b")),
    }
    assert arrays["/w"].tolist() == a.w._values().tolist() and arrays["/s/t"].shape == (4, 2, 2)
    again = dy.read_checkpoint(tmp_path / "c").parameters
    assert all((arrays[name] == again[name]).all() for name in arrays)


def test_a_subcollection_fits_another_place(tmp_path: Path) -> None:
    a = Small()
    dy.save_checkpoint(tmp_path / "c", a.sub, dy.AdamTrainer(a.sub))
    other = dy.ParameterCollection()
    other.add_lookup_parameters((4, 2, 2), name="t")
    other.add_parameters(1)
    dy.load_checkpoint(tmp_path / "c", other, dy.AdamTrainer(other))
    np.testing.assert_array_equal(other.lookup_parameters_list()[0].as_array(), a.table.as_array())


def test_builders_are_made_again(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    made = {
        "a": dy.VanillaLSTMBuilder(2, 3, 4, m, True, 0.5),
        "b": dy.BiRNNBuilder(1, 3, 4, m, dy.GRUBuilder),
        "c": dy.NaryTreeLSTMBuilder(2, 1, 3, 4, m),
    }
    dy.save_checkpoint(tmp_path / "c", m, builders=made)
    file, other = dy.read_checkpoint(tmp_path / "c"), dy.ParameterCollection()
    assert file.builders["a"] == ("dynet_lite:VanillaLSTMBuilder", (2, 3, 4, True, 0.5))
    again = {name: file.build(name, other) for name in made}
    file.restore(other, builders=again)
    for name, b in made.items():
        assert type(again[name]) is type(b) and again[name].spec == b.spec
    for p, q in zip(m._all, other._all, strict=True):
        assert p.name() == q.name() and p._values().tobytes() == q._values().tobytes()
    again["a"] = dy.VanillaLSTMBuilder(2, 3, 4, other, True, 0.25)
    with pytest.raises(dy.ModelFileError, match=r"0\.25.*0\.5"):
        file.restore(other := pickle.loads(pickle.dumps(m)), builders=again)
    with pytest.raises(KeyError, match="no builder 'z'"):
        file.build("z", other)


def test_a_trainer_of_a_list_and_alone(tmp_path: Path) -> None:
    a = Small()
    dy.save_checkpoint(tmp_path / "c", a.model, list(a.trainers.values()))
    dy.load_checkpoint(tmp_path / "c", a.model, list(a.trainers.values()))
    dy.save_checkpoint(tmp_path / "c", a.model, a.trainers["part"])
    dy.load_checkpoint(tmp_path / "c", a.model, a.trainers["part"])
    with pytest.raises(dy.ModelFileError, match="AdamTrainer.* only|only|the state is that of"):
        dy.load_checkpoint(tmp_path / "c", a.model, a.trainers["all"])


GENERATORS: dict[str, Callable[[int], Any]] = {
    "python": random.Random,
    "module random": lambda seed: (random.seed(seed), random)[1],
    "numpy.random": lambda seed: (np.random.seed(seed), np.random)[1],
    "RandomState": np.random.RandomState,
    **{
        kind: lambda seed, kind=kind: np.random.Generator(getattr(np.random, kind)(seed))
        for kind in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
    },
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_generators_go_on(kind: str, tmp_path: Path) -> None:
    def draw(g: Any) -> Any:
        if hasattr(g, "gauss"):
            return [g.random(), g.gauss(0, 1)]
        return [*g.normal(size=3).tolist(), float(g.uniform())]

    make, m = GENERATORS[kind], dy.ParameterCollection()
    g = make(1)
    draw(g)
    dy.save_checkpoint(tmp_path / "c", m, rng=g)
    expected = draw(g), draw(g)
    g = make(2)
    dy.load_checkpoint(tmp_path / "c", m, rng=g)
    assert (draw(g), draw(g)) == expected


def test_a_generator_of_another_kind(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    for mine in GENERATORS:
        dy.save_checkpoint(tmp_path / "c", m, rng=GENERATORS[mine](1))
        for other in GENERATORS:
            if {mine, other} in ({"python", "module random"}, {"RandomState", "numpy.random"}, {mine}):
                continue
            with pytest.raises(dy.ModelFileError, match="generator 0"):
                dy.load_checkpoint(tmp_path / "c", m, rng=GENERATORS[other](1))


# ---- what does not fit, and what is damaged ------------------------------------------------------------------------


def test_wrong_arguments(tmp_path: Path) -> None:
    a, path = Small(), tmp_path / "c"
    other = dy.AdamTrainer(Small().model)
    for options, error, text in [
        ({"trainer": other}, ValueError, "not in the collection"),
        ({"trainer": 3}, TypeError, "iterable"),
        ({"trainer": [a.model]}, TypeError, "not a trainer"),
        ({"trainer": {"a/b": other}}, ValueError, "without '/'"),
        ({"config": {1: object()}}, TypeError, "JSON"),
        ({"config": [float("nan")]}, ValueError, "JSON"),
        ({"config": {"a": {1: 2, "1": 3}}}, ValueError, "JSON can hold: a name occurs twice"),
        ({"builders": dy.LSTMBuilder(1, 2, 2, a.model, forget_bias=float("nan"))}, ValueError, "NaN cannot be kept"),
        ({"rng": [3]}, TypeError, "not a generator"),
        ({"rng": random.SystemRandom()}, TypeError, "iterable"),
        ({"builders": [a.w]}, TypeError, "not a builder"),
    ]:
        with pytest.raises(error, match=text):
            a.save(path, **options)
    with pytest.raises(TypeError, match="ParameterCollection"):
        dy.save_checkpoint(path, a.lstm)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        a.save(tmp_path / "no" / "folder")
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        a.load(path)
    with pytest.raises(OSError):
        a.load(tmp_path)


def test_the_old_file_stays_when_saving_fails(tmp_path: Path) -> None:
    a, path = Small(), tmp_path / "c"
    a.save(path)
    before = path.read_bytes()
    a.w.set_value(np.full((2, 3), np.inf))
    with pytest.raises(ValueError, match="/w has NaN"):
        a.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["c"]


def fails(path: Path, match: str, a: Small | None = None) -> None:
    """Loading gives an error and changes nothing."""
    a = a or Small(2)
    before = a.everything()
    with pytest.raises(dy.ModelFileError, match=match) as error:
        a.load(path)
    assert isinstance(error.value, ValueError) and isinstance(error.value, RuntimeError)
    assert str(path) in str(error.value) and a.everything() == before


def test_another_model(tmp_path: Path) -> None:
    path = tmp_path / "c"
    Small().save(path)
    a = Small(2)
    a.model.add_parameters(2, name="more")
    fails(path, "only here: /more$", a)
    a = Small(2)
    a.trainers["third"] = dy.EGTrainer(a.model)
    fails(path, "only here: third$", a)
    a = Small(2)
    a.trainers["all"] = dy.AmsgradTrainer(a.model)
    fails(path, "the state is that of a AdamTrainer", a)
    a = Small(2)
    a.rng["third"] = random.Random()
    fails(path, "only here: third", a)
    m = dy.ParameterCollection()
    m.add_parameters((2, 3), name="w")
    with pytest.raises(dy.ModelFileError, match="only in the file: /_0, /s/_0, /s/t, "):
        dy.load_checkpoint(path, m)
    m = dy.ParameterCollection()
    dy.save_checkpoint(path, m)
    p = m.add_parameters((2, 3), init=1)
    dy.save_checkpoint(path, m)
    for make in (lambda m: m.add_parameters((3, 2)), lambda m: m.add_lookup_parameters((2, 3))):
        m = dy.ParameterCollection()
        p = make(m)
        before = p.as_array()
        with pytest.raises(dy.ModelFileError, match=r"/_0 is a \w+ of shape"):
            dy.load_checkpoint(path, m)
        assert (p.as_array() == before).all()


def test_any_cut_and_many_flips(tmp_path: Path) -> None:
    """A file cut anywhere is noticed; one with other bytes is refused, or read whole."""
    path = tmp_path / "c"
    Small().save(path)
    data, a = path.read_bytes(), Small(2)
    before = a.everything()
    rng = random.Random(5)
    for n in [*range(200), *rng.sample(range(200, len(data)), 200), len(data) - 1]:
        path.write_bytes(data[:n])
        with pytest.raises(dy.ModelFileError):
            a.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(dy.ModelFileError):
        a.load(path)
    assert a.everything() == before
    good = 0
    for k in range(400):
        damaged = bytearray(data)
        for _ in range(1 + k % 3):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            a.load(path)
            good += 1
            a = Small(2)
            before = a.everything()  # the state of a generator may be another
        except dy.ModelFileError:
            assert a.everything() == before
    assert good < 350
    path.write_bytes(data)
    a.load(path)


def parts_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def join(head: Any, body: bytes) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + body


def test_hostile_heads(tmp_path: Path) -> None:
    path = tmp_path / "c"
    Small().save(path)
    head, body = parts_of(path.read_bytes())
    text = json.dumps(head).encode()
    info = head["/w"]
    for damaged in (
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 2**63) + b"{}",
        b"PK\x03\x04" + body,
        b"cos\nsystem\n(S'true'\ntR.",
        join(b"{" * 100000, b""),
        join({**head, "/w": {**info, "shape": [2**62, 2**62]}}, body),
        join({**head, "/w": {**info, "shape": [-2, -3]}}, body),
        join({**head, "/w": {**info, "shape": [3, 3]}}, body),
        join({**head, "/w": {**info, "shape": [3, 2]}}, body),
        join({**head, "/w": {**info, "shape": [6]}}, body),
        join({**head, "/w": {**info, "dtype": "I32"}}, body),
        join({**head, "/w": {**info, "dtype": "X"}}, body),
        join({**head, "/w": {**info, "data_offsets": [0, 2**40]}}, body),
        join({**head, "/w": head["/s/_0"]}, body),
        join({**head, "__metadata__": {}}, body),
        join({**head, "__metadata__": {"dynet_lite": 3}}, body),
        join({**head, "__metadata__": {"dynet_lite": "[" * 100000}}, body),
        join({k: v for k, v in head.items() if k != "__metadata__"}, body),
        join(text[:-1] + b"," + text[1:], body),  # every name twice
        join({("/w2" if k == "/w" else k): v for k, v in head.items()}, body),
        join(json.dumps(head).encode("utf-16"), body),
    ):
        path.write_bytes(damaged)
        fails(path, "load_checkpoint")


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite the description of a file."""
    head, body = parts_of(path.read_bytes())
    document = json.loads(head["__metadata__"]["dynet_lite"])
    text = change(document)
    head["__metadata__"]["dynet_lite"] = text if isinstance(text, str) else json.dumps(document)
    path.write_bytes(join(head, body))


def put(*keys: Any) -> Callable[[dict[str, Any]], None]:
    """A change that puts the last of keys at the place that the others name."""

    def change(document: Any) -> None:
        *way, last, value = keys
        for key in way:
            document = document[key]
        document[last] = value

    return change


SETTINGS = ("trainers", "all", "settings")
TREE: Any = []
for _ in range(50):
    TREE = {"tuple": [TREE]}
HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nothing": lambda d: d.clear(),
    "no object": lambda d: "[]",
    "no JSON": lambda d: "{",
    "NaN": lambda d: json.dumps({**d, "config": float("nan")}),
    "a version to come": put("version", 2),
    "a part more": put("more", 1),
    "a part less": lambda d: d.pop("rng"),
    "parameters are a list": put("parameters", []),
    "a parameter less": lambda d: d["parameters"].pop("/w"),
    "a parameter more": put("parameters", "/x", {"kind": "weight", "shape": [1], "updated": True}),
    "a kind": put("parameters", "/w", "kind", "table"),
    "another kind": put("parameters", "/w", "kind", "zebra"),
    "a shape": put("parameters", "/w", "shape", [3, 2]),
    "no shape": put("parameters", "/s/t", "shape", []),
    "a wild shape": put("parameters", "/w", "shape", "x"),
    "updated": put("parameters", "/w", "updated", "yes"),
    "a flag less": lambda d: d["parameters"]["/w"].pop("updated"),
    "weight decay": put("weight_decay", 1.5),
    "weight decay is text": put("weight_decay", "x"),
    "trainers are a list": put("trainers", []),
    "no trainer": put("trainers", {}),
    "another trainer": put("trainers", "all", "class", "EGTrainer"),
    "a trainer's class is a list": put("trainers", "all", "class", [[]]),
    "no class of a trainer": lambda d: d["trainers"]["all"].__delitem__("class"),
    "no settings of a trainer": lambda d: d["trainers"]["all"].__delitem__("settings"),
    "a trainer is a list": put("trainers", "all", []),
    "averages of others": put("trainers", "all", "missed", {"/x": 1}),
    "averages of no value": put("trainers", "all", "missed", {"/w": 1}),
    "averages are a list": put("trainers", "all", "missed", [["/w", 1]]),
    "parameters of a trainer": put("trainers", "all", "parameters", ["/w"]),
    "no parameters of a trainer": put("trainers", "all", "parameters", None),
    "no settings": put(*SETTINGS, {"dict": []}),
    "settings are a list": put(*SETTINGS, []),
    "settings are text": put(*SETTINGS, "dict"),
    "a setting of a list": put(*SETTINGS, {"dict": [[[], 1]]}),
    "a setting is text": lambda d: d["trainers"]["all"]["settings"]["dict"][0].__setitem__(1, "x"),
    "a setting is infinite": lambda d: d["trainers"]["all"]["settings"]["dict"][0].__setitem__(1, {"number": "inf"}),
    "updates below zero": lambda d: [s.__setitem__(1, -1) for s in d["trainers"]["all"]["settings"]["dict"]],
    "builder": put("builders", "lstm", "class", "os:system"),
    "a builder without spec": lambda d: d["builders"]["lstm"].pop("spec"),
    "a builder's class is a number": put("builders", "lstm", "class", 3),
    "a spec": put("builders", "lstm", "spec", {"call": ["os:system"]}),
    "a deep spec": put("builders", "lstm", "spec", TREE),
    "engine": put("engine", [1]),
    "engine's state": put("engine", [-1, 1]),
    "engine's other state": put("engine", [1, 2**64]),
    "engine's state is a float": put("engine", [1.5, 1]),
    "no generator": put("rng", {}),
    "a generator": put("rng", "python", {"tuple": [3, {"tuple": [0] * 5}, None]}),
    "a place in a generator": lambda d: d["rng"]["python"]["tuple"][1]["tuple"].__setitem__(624, 10**6),
    "gauss of a generator": lambda d: d["rng"]["python"]["tuple"].__setitem__(2, "x"),
    "a generator is a number": put("rng", "numpy", 3),
    "an array": put("rng", "numpy", {"array": ["O", [1], ["x"]]}),
    "an array's shape": put("rng", "numpy", {"array": ["<u4", [2**40], [1]]}),
    "an array's type": put("rng", "numpy", {"array": ["<M8", [1], [1]]}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_descriptions(what: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    Small().save(path)
    changed(path, HOSTILE[what])
    fails(path, "load_checkpoint")


ARRAYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nan": lambda a: a["/w"].__setitem__((0, 0), np.nan),
    "infinity": lambda a: a["/s/t"].__setitem__((0, 0, 0), -np.inf),
    "nan in the state": lambda a: a["trainer:all/w"].__setitem__((0, 0), np.nan),
    "nan in a gradient": lambda a: a["grad:/s/t"].__setitem__((0, 0, 0), np.nan),
    "nan in the decay": lambda a: a["decay:/s/t"].__setitem__(0, np.nan),
    "growth for decay": lambda a: a["decay:/s/t"].__setitem__(1, -1e9),
    "decay above": lambda a: a["decay:/s/t"].__setitem__(slice(None), 700),
    "a wrong length": lambda a: a.update({"/w": np.zeros((2, 2), np.float32)}),
    "state of a wrong length": lambda a: a.update({"trainer:all/w": np.zeros((2, 5), np.float32)}),
    "state of a wrong number": lambda a: a.update({"trainer:all/w": np.zeros((3, 6), np.float32)}),
    "no state": lambda a: a.pop("trainer:all/w"),
    "state of nobody": lambda a: a.update({"trainer:all/x": np.zeros((2, 6), np.float32)}),
    "no gradient": lambda a: a.pop("grad:/s/t"),
    "no rows": lambda a: a.pop("rows:/s/t"),
    "rows twice": lambda a: a.update({"rows:/s/t": np.array([1, 1])}),
    "rows outside": lambda a: a.update({"rows:/s/t": np.array([1, 4])}),
    "rows below": lambda a: a.update({"rows:/s/t": np.array([-1, 1])}),
    "rows are numbers": lambda a: a.update({"rows:/s/t": np.array([1.0, 2.0], np.float32)}),
    "rows of two dims": lambda a: a.update({"rows:/s/t": np.array([[1], [2]])}),
    "no kept values": lambda a: a.pop("kept:/s/t"),
    "float64": lambda a: a.update({"/w": np.zeros((2, 3))}),
    "a name": lambda a: a.update({"/v": a.pop("/w")}),
    "one more": lambda a: a.update({"x": np.zeros(1, np.float32)}),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_hostile_arrays(what: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    Small().save(path)
    head, _ = parts_of(path.read_bytes())
    arrays = {name: array.copy() for name, array in safetensors.numpy.load(path.read_bytes()).items()}
    ARRAYS[what](arrays)
    path.write_bytes(safetensors.numpy.save(arrays, head["__metadata__"]))
    fails(path, "load_checkpoint")


def test_a_builder_of_a_class_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a = Small()
    a.save("c")
    for name in (
        "os:system",
        "no_such_module:X",
        "dynet_lite:esum",
        "dynet_lite:ParameterCollection",
        "dynet_lite",
        ":",
    ):
        changed(Path("c"), put("builders", "lstm", "class", name))
        file, m = dy.read_checkpoint("c"), dy.ParameterCollection()
        with pytest.raises(dy.ModelFileError, match="not a class with from_spec"):
            file.build("lstm", m)
    a.save("c")
    changed(Path("c"), put("builders", "lstm", "spec", {"tuple": [1, 2, -3]}))
    with pytest.raises(dy.ModelFileError, match="builder lstm cannot be made"):
        dy.read_checkpoint("c").build("lstm", m)
    assert m.add_subcollection("vanilla-lstm-builder").name() == "/vanilla-lstm-builder/"


def test_generators_states_are_looked_at() -> None:
    """NumPy takes any place in its table, and would read behind its end."""
    for kind, keys, value in [
        ("MT19937", ("state", "pos"), 625),
        ("MT19937", ("state", "key"), np.zeros(3, np.uint32)),
        ("Philox", ("buffer_pos",), 5),
        ("PCG64", ("has_uint32",), 2),
        ("PCG64", ("state", "state"), -1),
        ("PCG64", ("uinteger",), True),
        ("RandomState", ("gauss",), float("inf")),
        ("RandomState", ("bit_generator",), "PCG64"),
    ]:
        g = GENERATORS[kind](1)
        state = copy.deepcopy(randomness.state_of(g))
        before = repr(state)
        at = state
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value
        with pytest.raises((ValueError, TypeError)):
            randomness.check(g, state)
        assert repr(randomness.state_of(g)) == before


def test_packing() -> None:
    values = [
        None,
        True,
        3,
        2.5,
        "x",
        (1, (2,)),
        [1, [2]],
        {"a": (1,), 3: None, (1, 2): {}},
        {},
        (),
        float("-inf"),
        2**200,
    ]
    for value in [*values, values]:
        text = json.dumps(packing.pack(value), allow_nan=False)
        assert packing.unpack(json.loads(text)) == value
    a = np.arange(6, dtype=np.uint64).reshape(2, 3) + 2**63
    b = packing.unpack(json.loads(json.dumps(packing.pack(a))))
    assert b.dtype == a.dtype and (a == b).all()
    assert packing.pack(np.float32(0.5)) == 0.5 and packing.unpack({"class": "a:b"}) == "a:b"
    for bad in (object(), np.array(["x"]), float("nan"), {1}):
        with pytest.raises((TypeError, ValueError)):
            packing.unpack(packing.pack(bad))


def test_the_digest_sees_a_difference() -> None:
    """What the first test compares would tell runs apart."""
    a, b = Small(1), Small(1, 3)
    assert hashlib.sha256(a.everything().encode()).digest() != hashlib.sha256(b.everything().encode()).digest()
