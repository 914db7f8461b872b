"""XOR on one graph that is built once: inputs are set and the loss evaluated again, text save and populate."""

import os
import sys

import dynet as dy
from harness import finish, report, start

m = dy.Model()
W, b = m.add_parameters((8, 2)), m.add_parameters(8)
V, a = m.add_parameters((1, 8)), m.add_parameters(1)
start(m)
trainer = dy.SimpleSGDTrainer(m)
dy.renew_cg()
x = dy.vecInput(2)
y = dy.scalarInput(0)
h = dy.tanh((dy.parameter(W) * x) + dy.parameter(b))
pred = dy.logistic((dy.parameter(V) * h) + dy.parameter(a))
loss = dy.binary_log_loss(pred, y)
distance = dy.squared_distance(pred, y)

for epoch in range(60):
    total = 0.0
    for i in range(4):
        x1, x2 = i % 2, i // 2
        x.set([1 if x1 else -1, 1 if x2 else -1])
        y.set(1 if x1 != x2 else 0)
        total += loss.scalar_value()
        loss.backward()
        trainer.update()
    report(total)
    if epoch == 30:
        trainer.learning_rate = 0.05
        m.save(sys.argv[2] + ".model")
for i in range(4):
    x.set([1 if i % 2 else -1, 1 if i // 2 else -1])
    y.set(int(i in (1, 2)))
    report(pred.scalar_value())
    report(distance.value())

other = dy.ParameterCollection()
shapes = [other.add_parameters(s) for s in ((8, 2), 8, (1, 8), 1)]
other.populate(sys.argv[2] + ".model")
os.remove(sys.argv[2] + ".model")
dy.renew_cg()
report((dy.tanh(shapes[0] * dy.inputVector([1, -1]) + shapes[1])).vec_value())
finish()
