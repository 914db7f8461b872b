"""Rows that were looked up though the loss does not depend on them: DyNet moves them on with momentum, our own API does not."""

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
    for where in ("before", "after", "nowhere", "batch", "valued"):
        m = dy.ParameterCollection()
        E = m.add_lookup_parameters((6, 2), init=dy.ConstInitializer(1.0))
        W = m.add_parameters(2, init=dy.ConstInitializer(1.0))
        trainer = getattr(dy, kind)(m)
        for step in range(3):
            dy.renew_cg()
            if step == 0:
                loss = dy.sum_elems(dy.cmult(E[1], W)) + dy.sum_elems(E[2]) + dy.sum_elems(E[3])
            else:
                if where == "before":
                    unused = E[2]
                if where == "batch":
                    unused = dy.lookup_batch(E, [2, 3, 2])
                if where == "valued":
                    unused = dy.sum_elems(E[2])
                    unused.value()
                loss = dy.sum_elems(dy.cmult(E[1], W))
                if where == "after":
                    unused = E[2]
            loss.value()
            loss.backward()
            trainer.update()
        out.append(E.as_array().tolist())
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_our_own_api_leaves_them(kind, threads):
    names: dict = {"dy": dy}
    with dy.configure(threads=threads):
        exec(PROGRAM.format(kinds=[kind]), names)
    for table in names["out"]:
        np.testing.assert_array_equal(table, names["out"][2])


@needs_dynet
@pytest.mark.parametrize("threads", [1, 2])
def test_standing_in_for_dynet_they_go_on(threads):
    program = PROGRAM.format(kinds=KINDS)
    code = f"import json\nimport dynet_lite\ndynet_lite.install_as_dynet()\ndynet_lite.configure(threads={threads})\nimport dynet as dy\n"
    done = python("-c", code + program + "print(json.dumps(out))")
    assert done.returncode == 0, done.stderr
    ours, theirs = np.array(json.loads(done.stdout)), np.array(run(program))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert not np.allclose(theirs[5 * KINDS.index("AdamTrainer")], theirs[5 * KINDS.index("AdamTrainer") + 1])
