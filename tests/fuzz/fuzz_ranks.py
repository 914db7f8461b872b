"""Random trainings on two ranks and by workers of a pool, against one process that does the same.

    python tests/fuzz/fuzz_ranks.py --seed 0 --programs 50             # two ranks (mpiexec)
    python tests/fuzz/fuzz_ranks.py --seed 0 --programs 10 --workers   # workers that are forked, and that are spawned

A training is made by its seed: builders, cells and compiled functions, trainers, weights that are frozen, set, added and read
from files between the steps, steps that fail. Weights must be equal but for the order of sums, and the errors the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.distributed.world import Alone

ROWS, N, H, LABELS, STEPS = 20, 4, 6, 3, 14
TRAINERS = {"SimpleSGD": 0.1, "MomentumSGD": 0.05, "Adagrad": 0.05, "RMSProp": 0.01, "AdamW": 0.02}
Words = tuple[list[int], int]


class Model:
    """Something that has a loss of words and a label, in one of several forms."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.collection = m = dy.ParameterCollection()

        def numbers(*shape: int) -> np.ndarray:
            return rng.uniform(-1, 1, shape)

        self.E = m.lookup_parameters_from_numpy(numbers(ROWS, N))
        self.W, self.V, self.S = (m.parameters_from_numpy(numbers(*d)) for d in ((H, N), (H, H), (LABELS, H)))
        self.odd, self.tail = m.parameters_from_numpy(numbers(H)), m.add_subcollection()
        self.F = self.tail.lookup_parameters_from_numpy(numbers(ROWS, H))
        self.rnn = dy.VanillaLSTMBuilder(1, N, H, self.tail)
        for p in self.rnn.param_collection().parameters_list():
            p.set_value(numbers(*p.shape))
        self.more: list[Any] = []

    def weights(self) -> list[Any]:
        return [*self.collection.parameters_list(), *self.collection.lookup_parameters_list()]

    def form(self, kind: int, words: list[int]) -> Any:
        if kind == 0:
            h = dy.tanh(self.W * dy.esum([self.E[word] for word in words]))
        elif kind == 1:
            h = self.rnn.initial_state().transduce([self.E[word] for word in words])[-1]
        elif kind == 2:
            h = dy.scan(self.step, dy.zeros(H), words)[1]
        else:
            h = dy.tanh(dy.esum(self.F.rows(words)) + self.W * dy.average([self.E[word] for word in words]))
        if len(words) > 3:  # weights that only some ranks touch
            h = h + self.odd
        for p in self.more[: len(words) // 2]:
            h = h + dy.tanh(p)
        return h

    def loss(self, kind: int, example: Words) -> Any:
        return dy.pickneglogsoftmax(self.S * self.form(kind, example[0]), example[1])

    @dy.cell
    def step(self, h: Any, word: Any) -> Any:
        return dy.tanh(self.V * h + self.W * self.E[word] + self.F[word])


def passes(
    model: Model, kind: int, batch: Sequence[Words], mine: Sequence[Words], way: int, last: Callable[[Any], Any]
) -> float:
    """The gradients of a rank's part of a mini-batch; last: its last backward pass. What the losses add up to."""
    if way == 0:  # compiled, one example after the other

        def scaled(words: list[int], label: int) -> Any:
            return model.loss(kind, (words, label)) * (1 / len(batch))

        one = dy.compile(scaled, backward=True)
        return sum(one(*example) for example in mine)
    dy.renew_cg()
    losses = [model.loss(kind, example) * (1 / len(batch)) for example in mine]
    if not losses:
        return 0.0
    if way == 1 and len(losses) > 1:
        losses[0].backward()
        losses[0] = dy.nobackprop(losses[0])
    total = dy.esum(losses)
    last(total)
    return float(total.value())


def between(model: Model, trainer: Any, rng: np.random.Generator, folder: str, share: Callable[[], Any]) -> None:
    """What a program may do between two steps."""
    W = model.weights()[int(rng.integers(len(model.weights())))]
    row, what = int(rng.integers(ROWS)), int(rng.integers(18))
    table = isinstance(W, dy.LookupParameters)
    if what == 0:
        W.set_updated(False)
    elif what in (1, 2):
        W.set_updated(True)
    elif what == 3:
        W.scale(0.9)
    elif what == 4:
        model.E.init_row(row, model.E.row_as_array((row + 1) % ROWS))
    elif what == 5:
        trainer.learning_rate = trainer.learning_rate * 0.7
    elif what == 6:
        trainer.set_clip_threshold(float(rng.choice([0, 0.1, 5])))
    elif what == 7:
        trainer.set_sparse_updates(bool(rng.random() < 0.5))
    elif what == 8:
        model.collection.set_weight_decay_lambda(float(rng.choice([0, 0.01])))
    elif what == 9:
        trainer.restart()
    elif what == 10 and trainer._set_aside is None:
        trainer.load_state_dict(trainer.state_dict())
    elif what == 11 and len(model.more) < 2:
        model.more.append(model.collection.parameters_from_numpy(rng.uniform(-1, 1, H)))
        share()
    elif what == 12:
        model.collection.save(f"{folder}/m")
        model.collection.populate(f"{folder}/m")
    elif what == 13:
        W.init_from_array(W.as_array()[::-1]) if table else W.set_value(W.as_array() * 0.5)
    elif what == 14 and trainer._set_aside is None:
        dy.save_checkpoint(f"{folder}/c", model.collection, getattr(trainer, "trainer", trainer))
        dy.load_checkpoint(f"{folder}/c", model.collection, getattr(trainer, "trainer", trainer))
    elif what == 15:
        model.collection.reset_gradient()
    elif what == 16 and trainer._averaging and trainer.updates:
        trainer.swap_params_to_moving_average()
    elif what == 17:
        dy.configure(overlap=bool(rng.random() < 0.5))


def reads_alone(model: Model, rng: np.random.Generator, kind: int, mine: Sequence[Words]) -> None:
    """What one rank may read without the others, as in an evaluation: its examples, rows, a whole table."""
    row, what = int(rng.integers(ROWS)), int(rng.integers(4))
    dy.renew_cg()
    if not mine:
        return
    if what == 0:
        dy.esum([model.loss(kind, example) for example in mine]).value()
    elif what == 1:
        dy.squared_norm(dy.concatenate([model.E[row], model.F[row]])).value()
    elif what == 2:
        model.E.batch([row, 0]).npvalue()
    else:
        model.F.as_array()


def train(seed: int, world: Any, folder: str) -> np.ndarray:
    """All weights of a training, and what its steps have shown."""
    rng, model = np.random.default_rng([seed, 2]), Model(seed)
    world.begin(model) if isinstance(world, Workers) else None
    kind, shown = int(rng.integers(4)), []
    name = str(rng.choice(list(TRAINERS)))
    inner = getattr(dy, f"{name}Trainer")(model.collection, TRAINERS[name])
    if rng.random() < 0.2:
        inner.exponential_moving_average(0.5)
    if rng.random() < 0.2:
        model.W.set_updated(False)
    trainer = dy.distributed.Trainer(inner, bucket=int(rng.choice([100, 1 << 20])))
    dy.configure(overlap=True, threads=int(rng.choice([1, 1, 2])))
    for _ in range(STEPS):
        for _ in range(int(rng.integers(3))):
            between(model, trainer, rng, folder, trainer.share_weights)
        batch = [
            (rng.integers(0, ROWS, rng.integers(1, 7)).tolist(), int(rng.integers(LABELS)))
            for _ in range(rng.integers(1, 6))
        ]
        mine = world.share(batch, cost=lambda example: len(example[0]))
        way, sends, spoilt, looks = int(rng.integers(4)), rng.random() < 0.5, rng.random() < 0.08, rng.random() < 0.5
        if rng.random() < 0.3:
            reads_alone(model, rng, kind, mine)
        if spoilt and mine:
            dy.renew_cg()
            dy.esum([model.loss(kind, example) for example in mine]).value()
            try:
                dy.esum([model.loss(kind, example) for example in (*mine, ([1], LABELS))]).backward()
            except IndexError as error:
                assert "label" in str(error)
        last = trainer.backward if sends and way else lambda loss: loss.backward()
        value = (world.passes if isinstance(world, Workers) else passes)(model, kind, batch, mine, way, last)
        trainer.update()
        shown.append(float(world.sum([value])[0]))
        if looks:
            W = model.weights()[int(rng.integers(len(model.weights())))]
            shown.append(float(np.sum(W.as_array())))
    trainer.check_weights()
    return np.concatenate([*(p.as_array().ravel() for p in model.weights()), shown])


class Workers(Alone):
    """One process whose workers compute a part of each gradient, as its ranks would."""

    def __init__(self, start: str) -> None:
        super().__init__()
        self.start, self.pool = start, None

    def begin(self, model: Model) -> None:
        """Workers that know the model: as a fork, or as a copy that they are sent."""
        self.end()
        dy.squared_norm(model.loss(0, ([1], 0))).value()  # something has run here, and has plans
        context = multiprocessing.get_context(self.start)
        self.pool = context.Pool(1, take, [pickle.dumps(model)] if self.start == "spawn" else [model])

    def end(self) -> None:
        if self.pool is not None:
            self.pool.terminate()
            self.pool.join()

    def passes(
        self,
        model: Model,
        kind: int,
        batch: Sequence[Words],
        mine: Sequence[Words],
        way: int,
        last: Callable[[Any], Any],
    ) -> float:
        """Every other example is a worker's."""
        assert self.pool is not None
        numbers = (
            [p.as_array() for p in model.weights()],
            [p.is_updated() for p in model.weights()],
            [p.as_array() for p in model.more],
        )
        job = self.pool.apply_async(work, (*numbers, kind, batch, mine[1::2], way))
        value = passes(model, kind, batch, mine[::2], way, last)
        more, gradients = job.get(100)
        for p, gradient in zip(model.weights(), gradients, strict=True):
            if isinstance(p, dy.LookupParameters):
                gradient += p.grad_as_array()
                rows = np.flatnonzero(gradient.any(axis=1)).tolist()
                p.set_rows_grad(rows, gradient[rows])
            else:
                p.set_grad(p.grad_as_array() + gradient)
        return value + more


def take(given: Any) -> None:
    """A worker's model."""
    global of_worker
    of_worker = pickle.loads(given) if isinstance(given, bytes) else given


def work(values: list[np.ndarray], updated: list[bool], more: list[np.ndarray], kind: int, batch: Sequence[Words], mine: Sequence[Words],
         way: int) -> tuple[float, list[np.ndarray]]:  # fmt: skip
    """What the losses of a worker's part add up to, and their gradients."""
    model = of_worker
    model.more += [model.collection.parameters_from_numpy(a) for a in more[len(model.more) :]]
    for p, a, on in zip(model.weights(), values, updated, strict=True):
        p.zero_gradient()
        p.init_from_array(a) if isinstance(p, dy.LookupParameters) else p.set_value(a)
        p.set_updated(on)
    value = passes(model, kind, batch, mine, way, lambda loss: loss.backward())
    return value, [p.grad_as_array() for p in model.weights()]


def run(first: int, count: int, file: str, start: str | None) -> None:
    """What is done in each process. start: of workers."""
    world = Workers(start) if start else dy.distributed.init()
    folder = f"{file}.{world.rank}"
    os.makedirs(folder)
    out = {}
    for seed in range(first, first + count):
        try:
            out[str(seed)] = train(seed, world, folder)
        except Exception as error:  # of which all ranks must have one
            print(f"# seed {seed}, rank {world.rank} of {world.size}: {type(error).__name__}: {error}", flush=True)
            raise
    if isinstance(world, Workers):
        world.end()
    if world.rank == 0:
        np.savez(file, **out)


def campaign(first: int, count: int, workers: bool) -> list[str]:
    """The findings of these seeds."""
    others: dict[str, tuple[list[str], list[str]]] = {name: ([], ["--start", name]) for name in ("fork", "spawn")}
    if not workers:
        mpi = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
        if not mpi:
            raise SystemExit("there is no mpiexec: pip install 'dynet_lite[distributed]'")
        others = {"two ranks": ([mpi, "-n", "2"], [])}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, str(Path(__file__).resolve()), "--seed", str(first), "--programs", str(count), "--here"]
        for name, (before, more) in {"alone": ([], []), **others}.items():
            done = subprocess.run(
                [*before, *own, f"{folder}/{name}.npz", *more], capture_output=True, text=True, timeout=600
            )
            if done.returncode:
                found.append(
                    f"# seeds from {first} on, {name}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )
            elif name != "alone" and not found:
                found += compared(name, np.load(f"{folder}/alone.npz"), np.load(f"{folder}/{name}.npz"))
    return found


def compared(name: str, alone: Any, two: Any) -> list[str]:
    found = []
    for seed in alone.files:
        a, b = alone[seed], two[seed]
        off = float(np.max(np.abs(a - b) / (np.abs(a) + 1))) if a.shape == b.shape else np.inf
        if not off <= 2e-3:
            found.append(f"# seed {seed}, {name}: off by {off}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first training")
    parser.add_argument("--programs", type=int, default=10)
    parser.add_argument("--workers", action="store_true", help="workers that are forked or spawned, not ranks")
    parser.add_argument("--here", metavar="FILE", help="run them in this process, and write what is seen")
    parser.add_argument("--start", choices=["fork", "spawn"], help="of the workers of this process")
    args = parser.parse_args()
    if args.here:
        run(args.seed, args.programs, args.here, args.start)
        return 0
    found = campaign(args.seed, args.programs, args.workers)
    print("\n".join([*found, f"{args.programs} trainings, {len(found)} findings"]))
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
