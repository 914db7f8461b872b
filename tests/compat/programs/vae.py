"""A variational autoencoder; the noise is multiplied by 0 after it was drawn, so that engines can be compared."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, Z = 12, 3
rng = np.random.RandomState(1)
data = (rng.rand(10, D) > 0.5).astype(float)
m = dy.ParameterCollection()
W1, b1 = m.add_parameters((8, D)), m.add_parameters(8)
Wm, bm, Ws, bs = m.add_parameters((Z, 8)), m.add_parameters(Z), m.add_parameters((Z, 8)), m.add_parameters(Z)
W3, b3, W4, b4 = m.add_parameters((8, Z)), m.add_parameters(8), m.add_parameters((D, 8)), m.add_parameters(D)
start(m)
trainer = dy.AdamTrainer(m, alpha=0.01, eps=1e-3)  # a tiny eps follows the sign of rounding errors
for epoch in range(3):
    for row in data:
        dy.renew_cg()
        x = dy.inputVector(row)
        h1 = dy.rectify(dy.affine_transform([b1, W1, x]))
        mu, logvar = Wm * h1 + bm, Ws * h1 + bs
        std = dy.exp(logvar * 0.5)
        eps = dy.random_normal(dim=std.dim()[0])
        assert np.isfinite(eps.npvalue()).all()
        z = dy.cmult(eps * 0.0, std) + mu
        out = dy.logistic(W4 * dy.rectify(W3 * z + b3) + b4)
        bce = dy.binary_log_loss(out, x)
        kl = dy.sum_elems(dy.ones(Z) + logvar - dy.pow(mu, dy.scalarInput(2)) - dy.exp(logvar)) * -0.5
        loss = bce + kl
        report(loss.value())
        loss.backward()
        trainer.update()
finish()
