"""gradient() of weights, rows and other expressions after several passes and updates, beside the real DyNet."""

from __future__ import annotations

import numpy as np
from real_dynet import needs_dynet, run

import dynet_lite as dy

PROGRAM = """
m = dy.ParameterCollection()
W = m.add_parameters((12,), init=dy.ConstInitializer(1.0))
E = m.add_lookup_parameters((3, 12), init=dy.ConstInitializer(1.0))
trainer = dy.SimpleSGDTrainer(m, 0.1)
dy.renew_cg()
e, f = E[1], E[1]
out = []
def tell(*xs):
    out.append([np.asarray(x.gradient()).tolist() for x in xs] + [W.grad_as_array().tolist(), E.grad_as_array().tolist()])
l = dy.sum_elems(dy.cmult(W, e)) + dy.sum_elems(f) * 3
k = dy.sum_elems(dy.cmult(e, f))
l.backward(); tell(e, f, W)
l.backward(); tell(e, f, W)
k.backward(); tell(e, f)
l.backward(); tell(e, f, W)
trainer.update(); tell(e, f)
l.backward(); tell(e, f, W)
"""


@needs_dynet
def test_as_in_dynet():
    names: dict = {"dy": dy, "np": np}
    dy.configure(keep_weights=True)
    try:
        exec(PROGRAM, names)
    finally:
        dy.configure(keep_weights=False)
    for ours, theirs in zip(names["out"], run(PROGRAM), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
