"""Run as a program, with a number of threads: everything on the backend "apart", whose memory the host cannot reach.

Its kernels are the CPU's, so its numbers are, too: with one thread to the last bit. It says "the same" and ends with 0
unless a number differs; what follows an address outside of a backend kills it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "ops")]

from fused_programs import Model, Random  # noqa: E402
from harness import as_input, loss_of, sample  # noqa: E402
from ragged_programs import Sources  # noqa: E402
from samples import rows  # noqa: E402

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core  # noqa: E402
from dynet_lite.errors import NotFiniteError  # noqa: E402

Numbers = Iterator[Any]
TRAINERS: list[Callable[[dy.ParameterCollection], Any]] = [
    dy.SimpleSGDTrainer,
    dy.MomentumSGDTrainer,
    dy.AdagradTrainer,
    dy.AdamTrainer,
    dy.AmsgradTrainer,
]


PROGRAMS: list[int] = list(range(42))  # by seed


def op_table() -> Numbers:
    for row in rows():
        dy.renew_cg()
        _core.set_seed(5)
        inputs, values = [], []
        for seed in range(2):
            arrays, attrs = sample(row, seed)
            inputs.append([as_input(a) for a in arrays])
            values.append((row, row.call(*inputs[-1], **attrs)))
        loss = dy.esum([dy.sum_batches(dy.sum_elems(loss_of(*v))) for v in values])
        yield row, loss.npvalue()
        loss.backward(full=True)
        yield from ((row, e.gradient()) for each in inputs for e in each)


def programs() -> Numbers:
    for seed in PROGRAMS:
        dy.renew_cg()
        model = Model()
        built = (Random(seed, affine=seed % 2 == 0, examples=4) if seed < 30 else Sources(seed, held=seed % 2 == 0))(
            model
        )
        for part in (*built.losses[:2], built.loss):
            part.backward(full=bool(seed % 3))
        yield from ((seed, e.npvalue()) for e in built.values)
        yield from ((seed, e.gradient()) for e in built.inputs)
        yield from ((seed, g) for g in model.gradients().values())


def training(how: int, words: int = 4) -> Numbers:
    """Cells, words, mini-batches by hand, decay, clipping, old weights, numbers set and read in between, files."""
    pc = dy.ParameterCollection()
    table, lstm = pc.add_lookup_parameters((40, 8)), dy.VanillaLSTMBuilder(1, 8, 16, pc)
    w, b = pc.add_parameters((30, 16)), pc.add_parameters(30)
    trainer = TRAINERS[how](pc)
    trainer.set_clip_threshold(3.0)
    trainer.set_sparse_updates(how % 2 == 0)
    pc.set_weight_decay_lambda(0.01)
    rng = np.random.default_rng(how)
    for step in range(5):
        dy.renew_cg()
        again: list[dy.Expression] = []
        losses = []
        for size in (1, 3, 1):
            word = [rng.integers(40, size=size) for _ in range(words)]
            xs = [dy.lookup_batch(table, i) if size > 1 else table[int(i[0])] for i in word]
            xs.append(dy.inputTensor(rng.random((8, size)), batched=True))
            for h in lstm.initial_state().transduce(xs):
                loss = dy.pickneglogsoftmax_batch(dy.affine_transform([b, w, h]), list(rng.integers(30, size=size)))
                losses.append(dy.sum_batches(loss))
            again.append(losses[-1])
        loss = dy.esum(losses)
        yield step, loss.npvalue()
        loss.backward()
        yield step, b.gradient()
        yield step, table.grad_as_array()
        trainer.update()
        again[0].backward()  # with the weights of before
        trainer.update()
        if step == 2:
            w.scale(0.9)
            table.init_row(3, np.ones(8))
            w.scale_gradient(2.0)
        if step == 3:
            with TemporaryDirectory() as folder:
                pc.save(f"{folder}/m")
                trainer.restart()
                pc.populate(f"{folder}/m")
    yield from (p.as_array() for p in (*pc.parameters_list(), *pc.lookup_parameters_list()))


def kept_weights() -> Numbers:
    """Graphs of programs for DyNet go on with the weights that they began with."""
    _core.keep_weights(True)
    try:
        pc = dy.ParameterCollection()
        table, w = pc.add_lookup_parameters((5, 4)), pc.add_parameters((4, 4))
        trainer = dy.SimpleSGDTrainer(pc)
        dy.renew_cg()
        for k in range(3):
            loss = dy.squared_norm(w * table[k] + w * dy.sum_batches(dy.lookup_batch(table, [0, 2])))
            yield k, loss.npvalue()
            loss.backward()
            trainer.update()
        yield w.as_array(), table.as_array()
    finally:
        _core.keep_weights(False)


def checked() -> Numbers:
    dy.renew_cg(check_validity=True)
    e = dy.exp(dy.inputVector([1.0, 2.0]) * 30.0)
    yield dy.log(e).npvalue()
    try:
        dy.exp(e).npvalue()
    except NotFiniteError as error:
        yield str(error)


def all_of_it() -> Numbers:
    for how in range(len(TRAINERS)):
        yield from training(how)
    yield from checked()
    yield from kept_weights()
    yield from programs()
    yield from op_table()


def on(backend: str, threads: int) -> list[Any]:
    with dy.configure(backend=backend, threads=threads, random_seed=1, verify=True):
        _core.settings.least_work = 0
        return list(all_of_it())


def same(a: Any, b: Any, exact: bool) -> None:
    if isinstance(a, (tuple, list)):
        for one, other in zip(a, b, strict=True):
            same(one, other, exact)
    elif isinstance(a, np.ndarray):
        (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(
            a, b, **({} if exact else {"rtol": 1e-3, "atol": 1e-4})
        )
    else:
        assert a is b or a == b, (a, b)


if __name__ == "__main__":
    count = int(sys.argv[1])
    here, there = on("cpu", count), on("apart", count)
    assert len(here) == len(there)
    same(here, there, exact=count == 1)
    print("the same", len(here))
