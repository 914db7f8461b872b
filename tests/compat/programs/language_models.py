"""Log-linear and feed-forward language models, CBOW and skip-gram: sums of rows, batches of columns, negative samples."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, N, D = 25, 2, 8
m = dy.ParameterCollection()
tables = [m.add_lookup_parameters((V, V)) for _ in range(N)]
bias = m.add_parameters(V)
E, H, h, O, o = (m.add_lookup_parameters((V, D)), m.add_parameters((12, N * D)), m.add_parameters(12),
                 m.add_parameters((V, 12)), m.add_parameters(V))  # fmt: skip
C, U = m.add_lookup_parameters((V, D)), m.add_lookup_parameters((V, D))
start(m)
sgd, adam = dy.SimpleSGDTrainer(m, learning_rate=0.1), dy.AdamTrainer(m, 0.01)
text = [[(i * i + 3 * j + i * j) % V for j in range(5 + i % 4)] for i in range(6)]


def contexts(sent):
    padded = [0] * N + sent + [0]
    return [(padded[i - N : i], padded[i]) for i in range(N, len(padded))]


def log_linear(sent):
    dy.renew_cg()
    losses = []
    for history, word in contexts(sent):
        scores = dy.esum([dy.lookup(t, w) for t, w in zip(tables, history)] + [dy.parameter(bias)])
        losses.append(dy.pickneglogsoftmax(scores, word))
    return dy.esum(losses)


def feed_forward(sent):
    dy.renew_cg()
    pairs = contexts(sent)
    histories = np.array([p[0] for p in pairs])
    x = dy.concatenate([dy.lookup_batch(E, list(histories[:, k])) for k in range(N)])
    scores = dy.affine_transform([o, O, dy.tanh(dy.affine_transform([h, H, x]))])
    return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, [p[1] for p in pairs]))


def cbow(sent):
    dy.renew_cg()
    losses = []
    for history, word in contexts(sent):
        c = dy.esum([C[w] for w in history]) / float(N)
        scores = [dy.dot_product(c, U[word])] + [-dy.dot_product(c, U[(word * 3 + k) % V]) for k in range(1, 4)]
        losses += [-dy.log_sigmoid(s) for s in scores]
    return dy.average(losses)


def skip_gram(sent):
    dy.renew_cg()
    total = dy.zeros(1)
    for history, word in contexts(sent):
        for w in history:
            p = dy.softmax(dy.transpose(dy.concatenate_cols([U[k] for k in range(V)])) * C[w])
            total += -dy.log(dy.pick(p, word))
    return total


for epoch in range(3):
    for sent in text:
        for model, trainer in ((log_linear, sgd), (feed_forward, adam), (cbow, sgd), (skip_gram, sgd)):
            loss = model(sent)
            report(loss.value())
            loss.backward()
            trainer.update()
    sgd.learning_rate *= 0.5
vectors = C.as_array()
report([float(v) for v in (vectors @ vectors[3])[:6]])
finish()
