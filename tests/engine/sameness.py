"""Two builds of the engine do the same: what is written by one is compared with what is written by the other.

    python tests/engine/sameness.py write before.json     # with the one build on the path
    python tests/engine/sameness.py write after.json      # with the other
    python tests/engine/sameness.py compare before.json after.json

Written is, for each program and number of threads: the plans as text, those of the backward pass, too, the nodes after rewriting,
counters of the engine, and the bits of losses, values and gradients, those of a second pass over the same loss, too. The programs are seeded random ones of vectors, with and without affine maps, with mini-batches
and words, what the passes look for, and the models of the golden plans. Bits are those of one machine: compare there only.
What only one of the builds has is not compared, so that they may be of any age.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import random_programs  # noqa: E402
import test_plans  # noqa: E402
from fused_programs import Model, Random, engine  # noqa: E402

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core, structure  # noqa: E402

COUNTERS = ("nodes", "nodes_dead", "nodes_merged", "batches", "lower_bound", "floats_gathered", "floats_scattered", "rows_repeated",
            "matrices_transposed")  # fmt: skip


def bits(arrays: Any) -> str:
    found = hashlib.sha256()
    for a in arrays:
        found.update(np.ascontiguousarray(a, dtype=np.float32).tobytes())
    return found.hexdigest()


def drawn(seed: int) -> random_programs.Program:
    """A program as hypothesis draws them, from a seed."""
    rng = np.random.default_rng([seed, 11])
    ops = sorted(random_programs.STEPS)

    def step() -> random_programs.Step:
        return random_programs.Step(
            ops[rng.integers(len(ops))], (int(rng.integers(31)), int(rng.integers(31))), int(rng.integers(21))
        )

    templates = tuple(tuple(step() for _ in range(rng.integers(3, 25))) for _ in range(rng.integers(1, 4)))
    examples = tuple((int(rng.integers(3)), int(rng.integers(4))) for _ in range(rng.integers(2, 9)))
    return random_programs.Program(templates, examples)


def observed(build: Callable[[], tuple[Any, list[Any], Callable[[], list[Any]]]], **how: Any) -> dict[str, Any]:
    with engine(**how):
        _core.set_seed(1)
        loss, values, gradients = build()
        loss.value()
        out: dict[str, Any] = {"loss": bits([loss.npvalue()]), "values": bits([v.npvalue() for v in values])}
        loss.backward()
        if hasattr(_core.cg(), "backward_text"):  # there were builds without a plan of the backward pass
            out["backward"] = _core.cg().backward_text(most=1 << 20)
        out["gradients"] = bits(gradients())
        out["plan"] = dy.plan_text()
        out["nodes"] = [f"{n.sort} {n.op} {n.arguments}" for n in structure.read().nodes]
        loss.backward()
        out["again"] = bits(gradients())
        stats = dy.stats()
        out["counters"] = {name: stats[name] for name in COUNTERS}
        return out


def of_engine(seed: int) -> Any:
    model = Model()
    built = Random(seed, affine=seed % 3 > 0, examples=2 + seed % 4)(model)
    return built.loss, built.values, lambda: list(model.gradients().values())


def of_property(seed: int) -> Any:
    model = random_programs.Model()
    loss, values, _ = drawn(seed).build(model)
    return loss, values, model.gradients


def of_folds(seed: int, model: Model | None = None) -> Any:
    """What the passes look for, in a random order and now and then with an expression that holds what is between."""
    rng, model, n = np.random.default_rng([seed, 12]), model or Model(), 16
    words, w, u, b = model.table(n), model.weight("W", n, n), model.weight("U", n, n), model.weight("b", n)
    out, c, v = model.weight("O", 20, n), model.weight("c", 20), model.weight("v", 1, n)
    losses, held = [], []
    for _ in range(rng.integers(2, 5)):
        xs = [words[int(rng.integers(7))] for _ in range(rng.integers(2, 4))]
        hs = [dy.tanh(dy.affine_transform([b, w, x])) for x in xs]
        for way in rng.permutation(7)[: rng.integers(2, 8)]:
            h = hs[int(rng.integers(len(hs)))]
            if way == 0:
                scores = (dy.affine_transform([c, out, h]), out * h + c, out * h)[int(rng.integers(3))]
                losses.append(dy.pickneglogsoftmax(scores, int(rng.integers(20))))
                held += [scores] if rng.random() < 0.2 else []
            elif way == 1:
                both = dy.concatenate([xs[0], dy.softmax(u * h)])
                parts = [model.weight(f"P{k}", n, 2 * n) * both for k in range(rng.integers(1, 4))]
                losses += [dy.logsumexp_dim(p) for p in parts]
                held += [both] if rng.random() < 0.2 else []
            elif way == 2:
                keys = dy.concatenate_cols(hs)
                weights = dy.softmax(dy.transpose(v * dy.tanh(dy.colwise_add(u * keys, w * h))))
                hs.append(dy.reshape(keys * weights, (n,)))
            elif way == 3:
                many = dy.affine_transform([c, out, dy.concatenate_to_batch(hs)])
                losses.append(dy.sum_batches(dy.pickneglogsoftmax_batch(many, [k % 20 for k in range(len(hs))])))
            elif way == 4:
                hs.append(dy.tanh(w * h + u * xs[0] + b))
                dy.exp(dy.tanh(hs[-1] + h))  # dead
            elif way == 5:
                for k in range(rng.integers(1, 4)):
                    both = dy.concatenate([xs[-1], hs[-1]] if k else [h, xs[0]])
                    hs.append(dy.tanh(dy.affine_transform([b, model.weight("T", n, 2 * n), both])))
                    held += [both] if rng.random() < 0.1 else []
            else:
                i, f, g = (model.weight("W" + k, n, n) * xs[-1] + model.weight("U" + k, n, n) * h for k in "ifg")
                hs.append(dy.cmult(dy.logistic(i), dy.tanh(g)) + dy.cmult(dy.logistic(f), h))
        losses.append(dy.dot_product(hs[-1], hs[-1]))
    return dy.esum(losses), held, lambda: list(model.gradients().values())


def of_model(name: str) -> Any:
    model = test_plans.MODELS[name]()
    loss = model.loss()
    return (
        loss,
        [],
        lambda: [p.grad_as_array() for p in (*model.pc.parameters_list(), *model.pc.lookup_parameters_list())],
    )


def programs(count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    for seed in range(count):
        yield f"engine {seed}", lambda seed=seed: of_engine(seed)
        yield f"property {seed}", lambda seed=seed: of_property(seed)
        yield f"folds {seed}", lambda seed=seed: of_folds(seed)
    for name in test_plans.MODELS:
        yield name, lambda name=name: of_model(name)


def write(path: str, count: int) -> None:
    found = {}
    dy.configure(verify=True, overlap=False)
    for name, build in programs(count):
        for threads in (1, 2, 3):
            found[f"{name}, {threads} threads"] = observed(build, threads=threads, merge=True)
    Path(path).write_text(json.dumps(found, indent=1))
    print(f"{len(found)} runs written to {path}")


def compare(a: str, b: str) -> int:
    one, other = (json.loads(Path(path).read_text()) for path in (a, b))
    differ = [f"{name}: {what}" for name in one.keys() & other for what in one[name].keys() & other[name]
              if one[name][what] != other[name][what]]  # fmt: skip
    differ += [f"{name}: in one of them" for name in one.keys() ^ other]
    print(
        "\n".join(sorted(differ)[:40]) or "the same", f"({len(one)} and {len(other)} runs, {len(differ)} differences)"
    )
    print(*(f"{what}: {n}" for what, n in Counter(line.split(": ")[-1] for line in differ).items()), sep=", ")
    return bool(differ)


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:4]))
    write(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 300)
