"""Span-based parser: differences of states as spans, charts of npvalue(), losses by margins, subclasses of the collection."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, H, LABELS = 6, 6, 4


class Feedforward:
    """Layers of the user's own, in a sub-collection."""

    def __init__(self, model, sizes, spec=None):
        self.model = model.add_subcollection("Feedforward")
        self.weights = [self.model.add_parameters((b, a)) for a, b in zip(sizes, sizes[1:])]
        self.biases = [self.model.add_parameters(b) for b in sizes[1:]]
        self.spec = sizes

    def param_collection(self):
        return self.model

    def __call__(self, x):
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = dy.affine_transform([dy.parameter(bias), dy.parameter(weight), x])
            if i < len(self.weights) - 1:
                x = dy.rectify(x)
        return x


class Model(dy.ParameterCollection):
    """Programs subclass the collection."""


m = Model()
E = m.add_lookup_parameters((15, D))
lstm = dy.BiRNNBuilder(2, D, 2 * H, m, dy.VanillaLSTMBuilder)
labels, splits = Feedforward(m, [2 * H, 8, LABELS - 1]), Feedforward(m, [2 * H, 8, 1])
start(m)
trainer = dy.SimpleSGDTrainer(m, 0.05)


def loss_of(sent, gold, train):
    dy.renew_cg()
    out = lstm.transduce([E[w] for w in [0] + sent + [1]])
    cache, n = {}, len(sent)

    def span(i, j):
        if (i, j) not in cache:
            forward = out[j][:H] - out[i][:H]
            backward = out[i + 1][H:] - out[j + 1][H:]
            cache[i, j] = dy.concatenate([forward, backward])
        return cache[i, j]

    chart = {}
    for length in range(1, n + 1):
        for i in range(n + 1 - length):
            j = i + length
            scores = dy.concatenate([dy.zeros(1), labels(span(i, j))])
            values = scores.npvalue()
            if train:
                values[[k for k in range(LABELS) if k != gold(i, j)]] += 1
            best = int(values.argmax())
            e, value = scores[best], float(values[best])
            if length > 1:
                pieces = [
                    (chart[i, k][0] + chart[k, j][0] + splits(span(i, k)).scalar_value(), k) for k in range(i + 1, j)
                ]
                top, k = max(pieces)
                e = e + chart[i, k][1] + chart[k, j][1] + splits(span(i, k))
                value += top
            chart[i, j] = (value, e)

    def oracle(i, j):
        scores = dy.concatenate([dy.zeros(1), labels(span(i, j))])
        e = dy.pick(scores, gold(i, j))
        if j - i > 1:
            e = e + splits(span(i, i + 1)) + oracle(i, i + 1) + oracle(i + 1, j)
        return e

    return chart[0, n], oracle(0, n)


sents = [[(i * 3 + k * k) % 15 for k in range(2 + i % 3)] for i in range(6)]
for epoch in range(3):
    batch = []
    for i, sent in enumerate(sents):
        (value, best), right = loss_of(sent, lambda a, b, i=i: (a + b + i) % LABELS, train=True)
        loss = best - right
        report([value, loss.scalar_value()])
        if value > right.scalar_value():
            loss.backward()
            trainer.update()
report([float(np.abs(p.as_array()).sum()) for p in m.parameters_list()[-4:]])
finish()
