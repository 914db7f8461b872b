#!/usr/bin/env python
"""Hello, world: a network with one hidden layer learns exclusive or.

    python recipes/xor.py

A complete program without the harness of the other recipes: parameters, a graph, a loss, a trainer.
"""

from collections.abc import Sequence

import dynet_lite as dy

EXAMPLES = [((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 1), 0)]

dy.reset_random_seed(1)
model = dy.ParameterCollection()
W = model.add_parameters((8, 2), name="W")
b = model.add_parameters(8, name="b")
V = model.add_parameters((1, 8), name="V")
a = model.add_parameters(1, name="a")
trainer = dy.SimpleSGDTrainer(model, learning_rate=0.5)


def network(x: Sequence[float]) -> dy.Expression:
    """An expression: nothing is computed before somebody asks for its value. `*` is the matrix product."""
    return dy.logistic(V * dy.tanh(W * dy.inputVector(x) + b) + a)


print("data: the four cases of exclusive or, made up, no licence needed")
for epoch in range(1, 401):
    dy.renew_cg()  # a new graph; below all four cases are added to it, and run together
    loss = dy.esum([dy.binary_log_loss(network(x), dy.scalarInput(y)) for x, y in EXAMPLES])
    value = loss.value()
    loss.backward()  # gradients of all parameters
    trainer.update()
    if epoch % 50 == 0:
        print(f"epoch {epoch:3}  loss {value:.4f}")

dy.renew_cg()
for x, y in EXAMPLES:
    print(f"{x[0]} xor {x[1]} = {network(x).value():.3f}  (expected {y})")
