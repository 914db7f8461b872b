"""Run as a program, with a number of threads: everything on the null backend, whose memory nobody can read.

It says "untouched" and ends with 0 unless something follows the address of a value or gradient: that kills it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "ops")]

from fused_programs import Model, Random  # noqa: E402
from harness import as_input, loss_of, sample  # noqa: E402
from samples import rows  # noqa: E402

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core  # noqa: E402


def op_table() -> None:
    for row in rows():
        dy.renew_cg()
        losses = []
        for seed in range(3):
            arrays, attrs = sample(row, seed)
            y = row.call(*[as_input(a) for a in arrays], **attrs)
            losses.append(loss_of(row, y))
            y.npvalue()
        loss = dy.esum([dy.sum_batches(dy.sum_elems(e)) for e in losses])
        loss.backward(full=True)


def programs() -> None:
    for seed in range(60):
        dy.renew_cg()
        built = Random(seed, affine=seed % 2 == 0, examples=4)(Model())
        for part in (*built.losses[:2], built.loss):
            part.backward(full=bool(seed % 3))
        for e in (*built.values, *built.inputs):
            e.npvalue()
            e.gradient()


def training() -> None:
    """Mini-batches by hand and automatic ones; cells, attention, a loss with its map, words, dropout."""
    pc = dy.ParameterCollection()
    table, lstm = pc.add_lookup_parameters((40, 8)), dy.VanillaLSTMBuilder(1, 8, 16, pc)
    lstm.set_dropout(0.2)
    gru = dy.GRUBuilder(1, 8, 16, pc)
    w, b, v, u = (pc.add_parameters(shape) for shape in ((130, 16), 130, (1, 16), (16, 16)))
    trainer = dy.AdamTrainer(pc)
    rng = np.random.default_rng(1)
    for epoch in range(3):
        dy.renew_cg()
        losses = []
        for batch in (1, 3, 1, 1, 12):
            xs = [
                dy.lookup_batch(table, rng.integers(40, size=batch)) if batch > 1 else table[int(rng.integers(40))]
                for _ in range(5)
            ]
            for h in (gru if epoch == 1 else lstm).initial_state().transduce(xs):
                loss = dy.pickneglogsoftmax_batch(
                    dy.affine_transform([b, w, h]), [int(i) for i in rng.integers(130, size=batch)]
                )
                losses.append(dy.sum_batches(dy.cmult(loss, dy.inputTensor(rng.random(batch).round(), batched=True))))
            if batch == 1:
                keys = dy.concatenate_cols(xs)
                scores = dy.softmax(dy.transpose(v * dy.tanh(dy.colwise_add(u[:, :8] * keys, u * h))))
                losses.append(dy.squared_norm(keys * scores))
        loss = dy.esum(losses)
        loss.value()
        loss.backward()
        trainer.update()


if __name__ == "__main__":
    for strategy in ("none", "depth", "agenda", "greedy"):
        with dy.configure(backend="null", threads=int(sys.argv[1]), strategy=strategy, verify=True):
            _core.settings.least_work = 0
            training()
            if strategy in ("greedy", "depth"):
                op_table()
                programs()
            dy.renew_cg()
    print("untouched")
