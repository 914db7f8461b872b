"""Coming from DyNet: an unchanged DyNet program, then the new features.

    python docs/tutorials/coming_from_dynet.py

docs/coming_from_dynet.md has the whole list of what is the same and what is not.
"""

# %% 1. A program for DyNet
# It runs unchanged. Here, install_as_dynet() makes `import dynet` import dynet_lite. To run a script of yours, use `python -m
# dynet_lite run script.py --dynet-seed 1`. In new code, write `import dynet_lite as dy`.
import tempfile
from pathlib import Path

import dynet_lite

dynet_lite.install_as_dynet()

import dynet as dy  # noqa: E402  (what DyNet's programs begin with)

m = dy.ParameterCollection()
pW = m.add_parameters((8, 2))
pb = m.add_parameters(8)
pV = m.add_parameters((1, 8))
trainer = dy.SimpleSGDTrainer(m, 0.5)

for _ in range(200):
    dy.renew_cg()
    W, b, V = dy.parameter(pW), dy.parameter(pb), dy.parameter(pV)
    losses = []
    for x, y in (((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 1), 0)):
        xe = dy.vecInput(2)
        xe.set(x)
        losses.append(dy.binary_log_loss(dy.logistic(V * dy.tanh(W * xe + b)), dy.scalarInput(y)))
    loss = dy.esum(losses)
    loss.backward()
    trainer.update()
print("xor, loss", round(loss.value(), 3))

# %% 2. Its files
# Models in DyNet's text format are read and written, by position as in DyNet. For new models use checkpoints: they have names, the
# trainer's state and the random generators.

with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "xor.model")
    m.save(path)
    print("the file begins", open(path).readline().strip())
    m.populate(path)

# %% 3. What you no longer need to write

dy.renew_cg()
x = dy.inputVector([0.5, -1.0])
h = dy.tanh(pW * x + pb)  # parameters are expressions: no dy.parameter(), nothing to renew
y = 2 * h / 3 - 1  # numbers and NumPy arrays on either side, division
print(h.shape, h[2:5].shape, h.npvalue().dtype)  # shapes without dim(); slices
# Batching is on unless you switch it off (--dynet-autobatch 0, dy.configure(autobatch=False)). Memory grows by itself:
# --dynet-mem is accepted and ignored.

# %% 4. Errors in place of crashes and wrong numbers

for what, wrong in {
    "a shape": lambda: pW * h,
    "an index": lambda: dy.pick(h, 8),
    "a label": lambda: dy.pickneglogsoftmax(h, 8),
}.items():
    try:
        wrong()
    except (ValueError, IndexError) as error:
        print(f"{what}: {type(error).__name__}: {error}")
dy.renew_cg()
try:
    dy.tanh(h)
except dynet_lite.StaleExpressionError as error:
    print(f"an old expression: {error}")

# %% 5. New questions you can ask

dy.renew_cg()
loss = dynet_lite.esum([dynet_lite.squared_norm(pW * dy.inputVector([i, 1.0])) for i in range(5)])
print(dynet_lite.explain_batches())  # what ran together, and why not more
