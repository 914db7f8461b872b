"""Manual mini-batches: lookups, picks and losses in batches, against the same one by one."""

import dynet as dy
import numpy as np
from harness import finish, report, start

m = dy.ParameterCollection()
lookup = m.add_lookup_parameters((10, 5))
W = m.add_parameters((6, 5), init=dy.ConstInitializer(0.1))
bias = m.add_parameters((6,), init="uniform", scale=0.3)
start(m)
trainer = dy.MomentumSGDTrainer(m, 0.05)

for step in range(10):
    dy.renew_cg()
    ids, labels = [step % 10, 3, 7, 3], [step % 6, 1, 0, 5]
    e1 = dy.lookup_batch(lookup, ids)
    e2 = lookup.batch(list(reversed(ids)))
    scores = W * dy.tanh(e1 + e2) + bias
    report(scores.npvalue().sum(axis=0).tolist())
    loss = dy.sum_batches(dy.pickneglogsoftmax_batch(scores, labels))
    p = dy.pick_batch(dy.softmax(scores), labels)
    second = dy.mean_batches(-dy.log(p))
    one = dy.pick(scores[0:3], 1)
    third = dy.squared_norm(dy.pick_batch_elem(scores, 2)) * 0.01
    fourth = dy.sum_batches(dy.max_dim(scores)) * 0.1 + dy.average([dy.pick_batch_elem(one, k) for k in range(4)])
    total = dy.esum([loss, second, third, fourth])
    report(total.value())
    total.backward()
    trainer.update()
mask = dy.inputTensor(np.array([[1.0, 0, 1, 1]]), batched=True)
report(dy.sum_batches(dy.cmult(dy.ones(1), mask)).value())
finish()
