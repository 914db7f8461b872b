"""restart() and the learning rate of each trainer: our own API counts updates from 0 again, DyNet counts on; Adadelta in DyNet has no rate."""

from __future__ import annotations

import json

import numpy as np
import pytest
from real_dynet import needs_dynet, python, run

import dynet_lite as dy

KINDS = ["SimpleSGDTrainer", "MomentumSGDTrainer", "AdagradTrainer", "AdadeltaTrainer", "RMSPropTrainer", "AdamTrainer",
         "AmsgradTrainer"]  # fmt: skip
PROGRAM = """
out = []
for kind in {kinds}:
    m = dy.ParameterCollection()
    W = m.add_parameters(2, init=dy.ConstInitializer(1.0))
    trainer = getattr(dy, kind)(m)
    for step in range(8):
        dy.renew_cg()
        loss = dy.dot_product(W, dy.inputVector([1.0, 2.0]))
        loss.value()
        loss.backward()
        trainer.update()
        out.append(W.as_array().tolist())
        if step == 2:
            trainer.restart()
        if step == 4:
            trainer.restart(0.05)
        if step == 6:
            trainer.learning_rate = 0.02
"""


@needs_dynet
def test_standing_in_for_dynet_numbers_are_those_of_dynet() -> None:
    program = PROGRAM.format(kinds=KINDS)
    done = python(
        "-c",
        f"import json\nimport dynet_lite\ndynet_lite.install_as_dynet()\nimport dynet as dy\n{program}print(json.dumps(out))",
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.array(json.loads(done.stdout)), np.array(run(program)), rtol=1e-5)


@pytest.mark.parametrize("kind", ["AdamTrainer", "AmsgradTrainer"])
def test_the_first_update_after_a_restart_is_like_the_first_of_all(kind: str) -> None:
    names: dict = {"dy": dy}
    exec(PROGRAM.format(kinds=[kind]), names)
    w = np.array([[1.0, 1.0], *names["out"]])
    np.testing.assert_allclose(w[4] - w[3], w[1] - w[0], rtol=1e-4)
    np.testing.assert_allclose(w[6] - w[5], 50 * (w[1] - w[0]), rtol=1e-4)


def test_adadelta_has_a_learning_rate() -> None:
    m = dy.ParameterCollection()
    W = m.add_parameters(1, init=1.0)
    steps = []
    for rate in (1.0, 0.5):
        W.set_value([1.0])
        trainer = dy.AdadeltaTrainer(m)
        trainer.learning_rate = rate
        dy.renew_cg()
        dy.sum_elems(W).backward()
        trainer.update()
        steps.append(W.value() - 1)
    assert steps[0] < 0
    np.testing.assert_allclose(steps[1], steps[0] / 2, rtol=1e-4)
