"""Random sessions with files and copies: models of any shape, saved, changed, loaded, copied, trained further; all must be equal to the bit.

    python tests/fuzz/fuzz_files.py --sessions 1000

A model is made from a plan, nested lists of names and shapes, so that a twin with other numbers can be made from it. What a way there and
back should give is known from the model that was saved. Loads that must fail (another shape, a cut file) must change nothing.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dynet_lite as dy

NAMES = [
    "w",
    "W",
    "b",
    "straße",
    "日本",
    "x_1",
    "_0",
    "_1",
    "a.b",
    "e\u0301",
    "",
    "",
    "",
    "lstm",
    "None",
    "grad",
    "rows",
]
SHAPES = [(1,), (3,), (3, 4), (2, 1), (1, 3), (1, 1), (2, 3, 2), (4, 1, 1), (0,), (0, 2)]
BUILDERS = {
    "VanillaLSTMBuilder": lambda m: dy.VanillaLSTMBuilder(2, 3, 4, m), "GRUBuilder": lambda m: dy.GRUBuilder(1, 2, 3, m),
    "BiRNNBuilder": lambda m: dy.BiRNNBuilder(1, 3, 4, m, dy.LSTMBuilder), "ln": lambda m: dy.VanillaLSTMBuilder(1, 3, 4, m, ln_lstm=True),
    "tree": lambda m: dy.NaryTreeLSTMBuilder(2, 1, 3, 3, m), "softmax": lambda m: dy.StandardSoftmaxBuilder(3, 5, m),
}  # fmt: skip
TRAINERS = [dy.SimpleSGDTrainer, dy.MomentumSGDTrainer, dy.AdagradTrainer, dy.AdamTrainer, dy.RMSPropTrainer, dy.AdadeltaTrainer,
            dy.AmsgradTrainer, dy.CyclicalSGDTrainer, dy.AdamWTrainer]  # fmt: skip
FLOATS = [0.0, -0.0, 1e-45, -1.1754942e-38, 3.4028235e38, 1.0000001, 0.1, 16777217.0, -3.3e-5]

Plan = list[tuple[Any, ...]]


class Session:
    def __init__(self, seed: int, folder: Path) -> None:
        self.r, self.folder = random.Random(seed), folder
        self.rng = np.random.default_rng(seed)
        self.log: list[str] = []
        self.count = 0

    # ---- models ----------------------------------------------------------------------------------------------------

    def plan(self, depth: int = 0) -> Plan:
        out: Plan = []
        for _ in range(self.r.randint(1, 4)):
            kind = self.r.choice(["weight", "weight", "table", "sub", "builder"] if depth < 3 else ["weight", "table"])
            name = self.r.choice(NAMES)
            if kind == "weight":
                out.append((kind, name, self.r.choice(SHAPES)))
            elif kind == "table":
                out.append((kind, name, (self.r.choice([1, 5, 40]), *self.r.choice(SHAPES))))
            elif kind == "sub":
                out.append((kind, name, self.plan(depth + 1)))
            else:
                out.append((kind, self.r.choice(list(BUILDERS))))
        return out

    def made(self, plan: Plan) -> tuple[dy.ParameterCollection, list[Any]]:
        """A model, and its builders."""
        model, builders = dy.ParameterCollection(), []

        def fill(m: Any, plan: Plan) -> None:
            for kind, *rest in plan:
                if kind == "weight":
                    m.add_parameters(rest[1], name=rest[0])
                elif kind == "table":
                    m.add_lookup_parameters(rest[1], name=rest[0])
                elif kind == "sub":
                    fill(m.add_subcollection(rest[0]), rest[1])
                else:
                    builders.append(BUILDERS[rest[0]](m))

        fill(model, plan)
        self.scramble(model)
        return model, builders

    def scramble(self, model: Any) -> None:
        for p in weights(model):
            x = self.rng.normal(0, self.r.choice([1e-6, 1.0, 1.0, 1e3]), p.shape()).astype(np.float32)
            if x.size and self.r.random() < 0.2:
                x.flat[self.r.randrange(x.size)] = self.r.choice(FLOATS)
            p.set_value(x) if isinstance(p, dy.Parameters) else p.init_from_array(x)

    def tame(self, model: Any) -> None:
        """Numbers with which training stays finite."""
        for p in weights(model):
            x = self.rng.uniform(-1, 1, p.shape()).astype(np.float32)
            p.set_value(x) if isinstance(p, dy.Parameters) else p.init_from_array(x)

    # ---- training --------------------------------------------------------------------------------------------------

    def steps(self, seed: int, model: Any, trainer: Any, count: int, last: bool = True) -> None:
        """Steps that are the same for every model like this one. last: the update of the last one, too."""
        r = random.Random(seed)
        for k in range(count):
            dy.renew_cg()
            terms = []
            for p in weights(model):
                shape = p.shape()
                if 0 in shape or r.random() < 0.3:
                    continue
                if isinstance(p, dy.Parameters):
                    terms.append(dy.sum_elems(dy.square(dy.tanh(dy.parameter(p)) - r.random())))
                else:
                    ids = [r.randrange(shape[0]) for _ in range(3)]
                    terms += [dy.sum_elems(dy.square(dy.tanh(p[i]) - r.random())) for i in ids]
            if not terms:
                continue
            loss = dy.esum(terms)
            loss.backward()
            if last or k + 1 < count:
                trainer.update()
        dy.renew_cg()

    def averaging(self, trainer: Any) -> Any:
        way = self.r.choice(["", "", "exponential", "cumulative"])
        if way == "exponential":
            trainer.exponential_moving_average(0.75, self.r.choice([1, 2]))
        elif way:
            trainer.cumulative_moving_average()
        return trainer

    def averaged(self, trainer: Any) -> None:
        """Perhaps the averages take the place of the weights."""
        if self.r.random() < 0.3 and trainer.moving_average() != "none" and trainer.updates:
            trainer.swap_params_to_moving_average()

    def trainer(self, model: Any) -> Any:
        trainer = self.averaging(self.r.choice(TRAINERS)(model))
        if self.r.random() < 0.3:
            model.set_weight_decay_lambda(0.01)
        if self.r.random() < 0.3:
            trainer.set_sparse_updates(False)
        if self.r.random() < 0.3:
            trainer.set_clip_threshold(self.r.choice([0.5, 0]))
        if self.r.random() < 0.2:
            trainer.learning_rate = 0.03
        for p in weights(model):
            if self.r.random() < 0.15:
                p.set_updated(False)
        return trainer

    # ---- ways there and back -------------------------------------------------------------------------------------------

    def path(self) -> Path:
        self.count += 1
        return self.folder / f"{self.r.choice(['m', 'ü 1', '模型'])}{self.count}"

    def run(self) -> None:
        plan = self.plan()
        self.log.append(f"plan {plan}")
        for _ in range(3):
            way = self.r.choice(WAYS)
            self.log.append(way.__name__)
            way(self, plan)


def weights(model: Any) -> list[Any]:
    return [*model.parameters_list(), *model.lookup_parameters_list()]


def bits(x: Any) -> bytes:
    return np.ascontiguousarray(x, dtype=np.float32).tobytes()


def state(model: Any, grads: bool = True) -> list[Any]:
    """All there is to see of the numbers of a model, in order."""
    return [
        (type(p).__name__, p.name(), p.shape(), bits(p.as_array()), bits(p.grad_as_array()) if grads else None)
        for p in weights(model)
    ]


def same(s: Session, found: list[Any], wanted: list[Any], what: str, names: bool = True) -> None:
    if not names:
        found, wanted = ([(k, sh, v, g) for k, _, sh, v, g in one] for one in (found, wanted))
    for one, other in zip(found, wanted, strict=True):
        assert one == other, f"{what}: {one} instead of {other}\n" + "\n".join(s.log)


def grown(s: Session, model: Any) -> Any:
    """Perhaps some training, which may leave gradients behind."""
    trainer = None
    if s.r.random() < 0.6:
        s.tame(model)
        trainer = s.trainer(model)
        s.steps(s.r.randrange(100), model, trainer, s.r.randint(1, 3), s.r.random() < 0.5)
    return trainer


def text(s: Session, plan: Plan) -> None:
    """save() and populate() of a collection, or a part; keys; behind one another."""
    model, _ = s.made(plan)
    twin, _ = s.made(plan)
    grown(s, model)
    wanted, file = state(model), s.path()
    key = s.r.choice(["", "", "/k", "/k/日"])
    first = s.r.random() < 0.3
    if first:
        other, _ = s.made(s.plan())
        other.save(file, name="/other")
    model.save(file, name=key, append=first) if key or first else model.save(file)
    assert state(model) == wanted, "saving changed something"
    if first and not key:
        return
    twin.populate(file, key) if key else twin.populate(file)
    same(s, state(twin), wanted, "text")
    fails(s, plan, file, key, wanted)


def fails(s: Session, plan: Plan, file: Path, key: str, wanted: list[Any]) -> None:
    """A cut file, a model with another shape: nothing changes. (A cut behind the last number loses nothing.)"""
    data = file.read_bytes()
    model, _ = s.made(plan)
    grown(s, model)
    before = state(model)
    if len(data) > 1:
        file.write_bytes(data[: s.r.randrange(len(data))])
        try:
            model.populate(file, key) if key else model.populate(file)
        except dy.ModelFileError:
            assert state(model) == before, "a file that cannot be read changed something"
        else:
            same(s, state(model), wanted, "a cut file was read")
    file.write_bytes(data)
    model.add_parameters((5, 7))
    before = state(model)
    try:
        model.populate(file, key) if key else model.populate(file)
    except dy.ModelFileError:
        assert state(model) == before
    else:
        raise AssertionError("a file of another model was read")


def singly(s: Session, plan: Plan) -> None:
    """Parameters one by one, into one file, with keys of their own; into the same shapes and into new parameters."""
    model, _ = s.made(plan)
    twin, _ = s.made(plan)
    grown(s, model)
    file = s.path()
    wanted = state(model)
    for k, p in enumerate(weights(model)):
        p.save(file, f"/k{k}", append=k > 0)
    mine = list(enumerate(weights(twin)))
    s.r.shuffle(mine)
    for k, p in mine:
        p.populate(file, f"/k{k}")
    same(s, state(twin), wanted, "single")
    new = dy.ParameterCollection()
    for k, p in enumerate(weights(model)):
        add = new.load_param if isinstance(p, dy.Parameters) else new.load_lookup_param
        got = add(file, f"/k{k}")
        assert (bits(got.as_array()), bits(got.grad_as_array())) == wanted[k][3:], f"load_param {k}\n" + "\n".join(
            s.log
        )


def objects(s: Session, plan: Plan) -> None:
    """dy.save and dy.load: builders and parameters."""
    model, builders = s.made(plan)
    grown(s, model)
    layers = [one for b in builders if isinstance(b, dy.BiRNNBuilder) for pair in b.builder_layers for one in pair]
    things = [*builders, *layers, *weights(model)]  # of which some are parts of others
    s.r.shuffle(things)
    things = things[: s.r.randint(1, len(things))] if things else []
    if not things:
        return
    file = s.path()
    dy.save(str(file), things)
    new = dy.ParameterCollection()
    if s.r.random() < 0.3:
        new.add_parameters(3)
    for one, other in zip(dy.load(str(file), new), things, strict=True):
        if isinstance(other, (dy.Parameters, dy.LookupParameters)):
            assert (bits(one.as_array()), bits(one.grad_as_array()), one.shape()) == (
                bits(other.as_array()),
                bits(other.grad_as_array()),
                other.shape(),
            ), "object\n" + "\n".join(s.log)
        else:
            same(s, state(one.param_collection()), state(other.param_collection()), "builder", names=False)
            assert type(one) is type(other) and one.spec == other.spec


def checkpoint(s: Session, plan: Plan) -> None:
    """A training goes on from a file as if it had never stopped, and so does one that went on from a copy."""
    model, builders = s.made(plan)
    s.tame(model)
    trainer = s.trainer(model)
    s.steps(1, model, trainer, s.r.randint(0, 3), s.r.random() < 0.5)
    file = s.path()
    dy.save_checkpoint(file, model, trainer, config={"日": [1, None, 2.5]}, builders=builders)
    twin, theirs = s.made(plan)
    other = type(trainer)(twin)
    if s.r.random() < 0.4:  # of which nothing may be left
        s.tame(twin)
        s.averaging(other)
        s.steps(5, twin, other, 2)
        s.averaged(other)
    for p in weights(twin):
        p.set_updated(True)
    read = dy.load_checkpoint(file, twin, other, builders=theirs)
    assert read.config == {"日": [1, None, 2.5]}
    goes_on(s, model, trainer, twin, other, "checkpoint")
    values, _ = s.made(plan)
    dy.load_checkpoint(file, values)
    data = bytearray(file.read_bytes())
    before = state(values)
    file.write_bytes(data[: s.r.randrange(len(data))])
    try:
        dy.load_checkpoint(file, values)
    except dy.ModelFileError:
        assert state(values) == before
    else:
        raise AssertionError("a cut file was read")


def goes_on(s: Session, model: Any, trainer: Any, twin: Any, other: Any, what: str) -> None:
    same(s, state(twin), state(model), what)
    for t in (trainer, other):
        t.swap_params_to_weights()
    same(s, state(twin), state(model), f"{what}, the weights again")
    assert trainer.state_dict().keys() == other.state_dict().keys()
    updated = [[p.is_updated() for p in weights(m)] for m in (model, twin)]
    assert updated[0] == updated[1], what
    s.steps(7, model, trainer, 3)
    s.steps(7, twin, other, 3)
    said = f"{what} ({type(trainer).__name__}), three steps later"
    same(s, state(twin), state(model), said)
    assert trainer.moving_average() == other.moving_average(), said
    if trainer.moving_average() != "none" and trainer.updates:
        for t in (trainer, other):
            t.swap_params_to_moving_average()
        same(s, state(twin), state(model), f"averages, {said}")


def states(s: Session, plan: Plan) -> None:
    """state_dict() and load_state_dict(), the weights by themselves."""
    model, _ = s.made(plan)
    s.tame(model)
    trainer = s.trainer(model)
    s.steps(1, model, trainer, s.r.randint(0, 3))
    twin, _ = s.made(plan)
    other = type(trainer)(twin)
    s.tame(twin)
    s.averaging(other)
    s.steps(5, twin, other, s.r.randint(0, 2))
    s.averaged(other)
    other.load_state_dict(pickle.loads(pickle.dumps(trainer.state_dict())))
    twin.set_weight_decay_lambda(model.get_weight_decay_lambda())
    file = s.path()
    model.save(file)
    twin.populate(file)
    for p, q in zip(weights(model), weights(twin), strict=True):
        q.set_updated(p.is_updated())
    goes_on(s, model, trainer, twin, other, "state_dict")


def copied(s: Session, plan: Plan) -> None:
    """deepcopy and pickle of a model with its trainer and its builders."""
    model, builders = s.made(plan)
    s.tame(model)
    trainer = s.trainer(model)
    s.steps(1, model, trainer, s.r.randint(0, 3))
    s.averaged(trainer)
    wanted = state(model)
    way: Callable[[Any], Any] = s.r.choice(
        [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: pickle.loads(pickle.dumps(x, 2))]
    )
    things = s.r.choice(
        [lambda: (model, trainer, builders), lambda: (trainer, model, builders), lambda: (builders, model, trainer)]
    )()
    made = way(things)
    twin = next(x for x in made if isinstance(x, dy.ParameterCollection))
    other = next(x for x in made if isinstance(x, dy.Trainer))
    assert state(model) == wanted
    goes_on(s, model, trainer, twin, other, "copy")
    before = state(twin)
    s.scramble(model)
    assert state(twin) == before, "a copy changes with the model"


WAYS = (text, text, singly, objects, checkpoint, checkpoint, copied, copied, states)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sessions", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.sessions):
        with tempfile.TemporaryDirectory() as folder:
            session = Session(seed, Path(folder))
            try:
                session.run()
            except Exception as error:
                wrong += 1
                print(f"session {seed}: {type(error).__name__}: {str(error)[:600]}\n   {session.log[-1]}", flush=True)
    print(f"{options.sessions} sessions, {wrong} with something wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
