"""backward() of a loss that ran together with what was built after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
import dynet_lite as dy

model = dy.ParameterCollection()
rnn = getattr(dy, sys.argv[1])(1, 3, 4, model)
W = model.add_parameters((4, 4))

def loss(numbers):
    states = rnn.initial_state().transduce([dy.inputVector(np.full(3, k)) for k in numbers])
    return dy.esum([dy.sum_elems(dy.tanh(W * h)) for h in states])

def gradients():
    found = [p.grad_as_array() for p in model.parameters_list()]
    for p in model.parameters_list():
        p.zero_gradient()
    return found

for settings in ({}, {"autobatch": False}, {"fuse": False}, {"autobatch": False, "fuse": False}, {"threads": 2}):
    with dy.configure(**settings):
        dy.renew_cg()
        loss([0.1, 0.2]).backward()
        alone = gradients()
        for full in (False, True):
            dy.renew_cg()
            early, late = loss([0.1, 0.2]), loss(np.linspace(0, 1, 1000))
            late.value()
            early.backward(full=full)
            for a, b in zip(gradients(), alone):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
            late.backward()
            assert all(np.isfinite(g).all() and g.any() for g in gradients())
"""


def test_what_stands_behind_the_loss_is_left_alone(tmp_path: Path) -> None:
    """It has no place among the pass's gradients. Memory that is not asked for is not zero here."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for builder in ("LSTMBuilder", "CoupledLSTMBuilder", "GRUBuilder"):
        done = subprocess.run(
            [sys.executable, str(program), builder], capture_output=True, text=True,
            env={**os.environ, "MALLOC_PERTURB_": "165", "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.returncode == 0, (builder, done.returncode, done.stderr)
