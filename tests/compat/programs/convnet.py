"""A convolutional classifier: conv2d_bias, maxpooling2d, reshape, dropout that is off, one forward for a list."""

import dynet as dy
import numpy as np
from harness import finish, report, start

rng = np.random.RandomState(2)
images, labels = rng.rand(12, 12, 12, 1), rng.randint(0, 4, 12)
m = dy.ParameterCollection()
f1, c1 = m.add_parameters((3, 3, 1, 4)), m.add_parameters(4)
f2, c2 = m.add_parameters((3, 3, 4, 5)), m.add_parameters(5)
W1, b1 = m.add_parameters((9, 45)), m.add_parameters(9)
W2, b2 = m.add_parameters((4, 9)), m.add_parameters(4)
start(m)
trainer = dy.SimpleSGDTrainer(m, learning_rate=0.1)


def scores_of(x, dropout):
    h = dy.rectify(dy.maxpooling2d(dy.conv2d_bias(x, f1, c1, [1, 1], is_valid=False), [2, 2], [2, 2]))
    h = dy.rectify(dy.maxpooling2d(dy.conv2d_bias(h, f2, c2, [1, 1], is_valid=False), [2, 2], [2, 2], is_valid=True))
    h = dy.reshape(h, (45,))
    h = dy.rectify(W1 * h + b1)
    if dropout:
        h = dy.dropout(h, dropout)
    return W2 * h + b2


for epoch in range(4):
    for k in range(0, 12, 4):
        dy.renew_cg()
        losses = [dy.pickneglogsoftmax(scores_of(dy.inputTensor(images[j]), 0), labels[j]) for j in range(k, k + 4)]
        dy.forward(losses)
        report([x.value() for x in losses])
        loss = dy.average(losses)
        report(loss.value())
        loss.backward()
        trainer.update()
        dy.renew_cg()
        batch = dy.inputTensor(np.moveaxis(images[k : k + 4], 0, -1), batched=True)
        loss = dy.mean_batches(dy.pickneglogsoftmax_batch(scores_of(batch, 0), list(labels[k : k + 4])))
        report(loss.npvalue().tolist())
        loss.backward()
        trainer.update()
finish()
