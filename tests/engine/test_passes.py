"""The table of passes: each can be switched off alone without a change of numbers, and says what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_programs import Built, Model, Random, agree, inputs, run, weighted
from sameness import of_folds

import dynet_lite as dy
from dynet_lite import _core

PASSES = [name for name, _, _ in _core.passes()]
each_pass = pytest.mark.parametrize("name", PASSES)


def everything(model: Model) -> Any:
    """Something for each pass to do."""
    w, b, out, c = (model.weight(*a) for a in (("W", 16, 16), ("b", 16), ("O", 20, 16), ("c", 20)))
    words, v = model.table(16), model.weight("v", 1, 16)
    xs = [words[k] for k in (1, 1, 2)]
    hs = [dy.softmax(dy.affine_transform([b, w, x])) for x in xs]
    dy.exp(hs[0])  # dead
    h = dy.softmax(model.weight("U", 16, 16) * hs[2])
    gates = [model.weight("W" + k, 16, 16) * hs[2] + model.weight("U" + k, 16, 16) * h for k in "ig"]
    state = dy.cmult(dy.logistic(gates[0]), dy.tanh(gates[1]))
    both = [dy.concatenate([words[k], h]) for k in (3, 4)]
    scores = v * dy.tanh(dy.colwise_add(w * dy.concatenate_cols(hs), h))
    many = dy.affine_transform([c, out, dy.concatenate_to_batch(hs[1:])])
    above = dy.tanh(dy.affine_transform([b, model.weight("T", 16, 32), dy.concatenate([state, h])]))
    return dy.esum([dy.pickneglogsoftmax(out * state + c, 3), dy.esum([dy.logsumexp_dim(model.weight("P", 16, 32) * x) for x in both]),
                    dy.sum_elems(dy.square(scores)), dy.sum_batches(dy.logsumexp_dim(many)),
                    dy.sum_elems(dy.logistic(dy.square(h))), dy.dot_product(above, above)])  # fmt: skip


@each_pass
def test_each_does_something_and_can_be_switched_off(name: str) -> None:
    loss = everything(Model())
    steps = {step.name: step for step in dy.explain_rewrites().steps}
    assert steps[name].ran and steps[name].changes
    wanted = loss.value()
    with dy.configure(rewrites=f"-{name}"):
        dy.renew_cg()
        assert dy.cg().passes() == [p for p in PASSES if p != name]
        loss = everything(Model())
        off = {step.name: step for step in dy.explain_rewrites().steps}[name]
        assert not off.ran and not off.changes
        assert loss.value() == pytest.approx(wanted, rel=1e-5)


def of_fold(seed: int) -> Any:
    def build(model: Model) -> Built:
        loss, held, _ = of_folds(seed, model)
        return Built(held, loss)

    return build


@pytest.mark.parametrize("threads", [1, 2])
@each_pass
def test_the_random_programs_agree_without_it(name: str, threads: int) -> None:
    programs = [
        *(Random(seed, affine=seed % 3 > 0, examples=3) for seed in range(20)),
        *(of_fold(seed) for seed in range(20)),
    ]
    for build in programs:
        wanted = run(build, full=False, merge=True, threads=threads)
        with dy.configure(rewrites=f"-{name}"):
            agree(run(build, full=False, merge=True, threads=threads), wanted, exact=False, rtol=1e-5, gtol=1e-4)


def test_the_graph_after_a_pass() -> None:
    x = inputs(count=1)[0]
    weighted(dy.tanh(dy.exp(x)))
    made = dy.plan_text(after="made")
    assert " inside " not in made and "\ttanh {8}\t 1\n" in made
    dy.renew_cg()
    y = weighted(dy.tanh(dy.exp(inputs(count=1)[0])))
    assert " inside " in dy.plan_text(after="fuse")
    with pytest.raises(ValueError, match="nothing is pending"):
        dy.plan_text(after="fuse")
    y = y * 2
    with pytest.raises(ValueError, match="no pass"):
        dy.plan_text(after="fused")


def test_settings() -> None:
    with dy.configure(rewrites=["-join", "-merge"]):
        assert dy.config.get("rewrites") == "-merge,-join"
        dy.renew_cg()
        assert dy.cg().passes() == [p for p in PASSES if p not in ("join", "merge")]
    dy.renew_cg()
    assert dy.cg().passes() == PASSES
    for wrong in ("join", "-joined", ["-join", "x"], 3):
        with pytest.raises(ValueError, match="rewrites"):
            dy.configure(rewrites=wrong)
    with dy.configure(fuse=False):
        dy.renew_cg()
        assert dy.cg().passes() == []


def test_environment(tmp_path: Path) -> None:
    place = {**os.environ, "PYTHONPATH": str(Path(_core.__file__).parents[1]), "DYNET_LITE_REWRITES": "-fuse,-dead"}
    code = "import dynet_lite as dy; print(dy.cg().passes())"
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=place, check=True).stdout
    assert "fuse" not in out and "dead" not in out and "merge" in out


def test_explanation_as_data() -> None:
    loss = everything(Model())
    e = dy.explain_rewrites()
    assert "loss: a loss and the map" in str(e) and "inside" in str(e)
    assert [s["name"] for s in json.loads(json.dumps(e.to_dict()))["steps"]] == PASSES
    assert all(not s.ran for s in dy.explain_rewrites().steps)
    assert np.isfinite(loss.value())


def test_signatures_of_before_a_revert_are_forgotten() -> None:
    """What comes after a revert has the numbers of signatures that passes have seen."""
    model = Model()
    x, w, b = model.table(16)[1], model.weight("W", 20, 16), model.weight("b", 20)
    dy.cg_checkpoint()
    dy.tanh(dy.exp(x)).value()
    dy.cg_revert()
    loss = dy.pickneglogsoftmax(dy.affine_transform([b, w, x]), 3)
    assert {step.name for step in dy.explain_rewrites().steps if step.changes} == {"loss"}
    scores = b.npvalue() + w.npvalue() @ x.npvalue()
    assert loss.value() == pytest.approx(np.log(np.exp(scores).sum()) - scores[3], rel=1e-5)
