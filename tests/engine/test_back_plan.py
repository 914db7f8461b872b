"""How backward passes are planned: the steps as text, in tests/golden/backward/, and what they hold.

DYNET_LITE_WRITE_GOLDEN=1 writes the files anew; look at the difference before you commit it. The verifier of backward plans is on
in all tests (conftest.py): here it sees random programs in lanes.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sameness
import test_plans
from fused_programs import Model, engine

import dynet_lite as dy
from dynet_lite import _core

GOLDEN = Path(__file__).parents[1] / "golden" / "backward"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", test_plans.MODELS)
def test_golden(name: str, threads: int) -> None:
    with engine(threads=threads):
        loss = test_plans.MODELS[name]().loss()
        assert dy.plan_text(backward=True) == ""
        loss.value()
        loss.backward()
        text = dy.plan_text(backward=True)
        dy.renew_cg()
        assert dy.plan_text(backward=True) == ""
    path = GOLDEN / f"{name}-{threads}.txt"
    if os.environ.get("DYNET_LITE_WRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    wanted = path.read_text()
    difference = difflib.unified_diff(wanted.splitlines(), text.splitlines(), path.name, "now", lineterm="")
    assert text == wanted, "\n".join(difference)


def test_tasks_wait_for_their_lane_and_the_lane_before() -> None:
    with engine(threads=2):
        loss = test_plans.MODELS["bilstm"]().loss()
        loss.value()
        loss.backward()
        lanes = next(s for s in dy.plan_text(backward=True).split("stage of ") if s.startswith("2 runs"))
    after = dict(re.findall(r"^task (\d+) of run \d+(.*)$", lanes, re.MULTILINE))
    bins = (len(after) - 2) // 2
    assert bins >= 2 and after["0"] == after["1"] == ""
    for b in range(bins):
        assert after[str(2 + b)] == " after 0"
        assert after[str(2 + bins + b)] == f" after 1 and {2 + b}"


def steps(build: Any, threads: int = 1) -> list[str]:
    with engine(threads=threads):
        loss = build(Model())
        loss.value()
        loss.backward()
        return dy.plan_text(backward=True).splitlines()


def test_what_is_old_is_added_later_if_it_is_little() -> None:
    def build(model: Model) -> Any:
        w, x = model.weight("W", 16, 16), model.table(16)
        hs = [dy.tanh(w * x[k]) for k in range(6)]
        return dy.esum(
            [dy.logsumexp_dim(dy.softmax(h)) for h in hs[:5]] + [dy.dot_product(dy.softmax(dy.softmax(hs[5])), hs[0])]
        )

    lines = steps(build)
    softmax = next(k for k, line in enumerate(lines) if "softmax {16} x 6" in line)
    assert "spare" in lines[softmax] and "=" in lines[softmax]
    assert re.fullmatch(r"add\t r0\+\d+ of 16", lines[softmax + 1])


def test_what_nobody_wants_is_clear_before_it_is_added_to() -> None:
    def build(model: Model) -> Any:
        w, x, v = model.weight("W", 16, 16), model.table(16), dy.inputTensor(np.ones(16))
        hs = [dy.tanh(w * x[k]) for k in range(3)]
        products = [dy.cmult(h, x[k]) for k, h in enumerate([*hs, v])]  # the input wants no gradient
        old = [dy.dot_product(dy.softmax(dy.softmax(products[k])), h) for k, h in enumerate(hs)]
        return dy.esum([dy.logsumexp_dim(p) for p in products] + old)

    lines = steps(build)
    call = next(k for k, line in enumerate(lines) if "cmult {16} x 4" in line)
    assert re.search(r"\t \+\S*,spare ", lines[call]) and lines[call - 1] == "zero\t spare of 16"


def test_gradients_of_joined_maps_lie_over_their_values() -> None:
    def build(model: Model) -> Any:
        x, h = model.table(16)[1], dy.softmax(model.table(16)[2])
        i, g = (model.weight(k, 16, 16) * h + model.weight("U" + k, 16, 16) * x for k in "ig")
        return dy.logsumexp_dim(dy.cmult(dy.logistic(i), dy.tanh(g)))

    lines = steps(build)
    assert any("x 2 {32} x 1" in line for line in lines)
    fused = next(line for line in lines if "cmult" in line)
    assert " =v0+" in fused and " =r0+" not in fused


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_in_lanes(seed: int, threads: int) -> None:
    found = {}
    for n in (1, threads):
        with engine(threads=n, merge=True):
            _core.set_seed(1)
            loss, _, gradients = sameness.of_folds(seed)
            loss.value()
            loss.backward()
            found[n] = gradients()
            assert dy.plan_text(backward=True).count("stage of") >= 1
    for a, b in zip(found[1], found[threads], strict=True):
        assert np.abs(a - b).max() <= 1e-5 * max(1.0, np.abs(a).max())
