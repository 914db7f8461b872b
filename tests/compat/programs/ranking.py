"""Ranking documents for a query: cosines, the k best of a row, gates and a hinge; the weights are read before the graph ends."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, WORDS = 6, 20
m = dy.ParameterCollection()
pad = m.add_lookup_parameters((2, D))
rnn = dy.BiRNNBuilder(2, D, D, m, dy.LSTMBuilder)
gate, W1, b1, W2 = (
    m.add_parameters((1, D + 1)),
    m.add_parameters((5, 4)),
    m.add_parameters((5,)),
    m.add_parameters((1, 5)),
)
start(m)
trainer = dy.SimpleSGDTrainer(m, 0.1)
rng = np.random.RandomState(2)
vectors = rng.normal(size=(WORDS, D)).astype(np.float32)


def encoded(words):
    fixed = [dy.nobackprop(dy.inputVector(vectors[w])) for w in words]
    inner = rnn.transduce([pad[0], *fixed, pad[1]])[1:-1]
    return [dy.esum([v, c]) for v, c in zip(fixed, inner)]


def cosine(x, y):
    return dy.cdiv(dy.dot_product(x, y), dy.l2_norm(x) * dy.l2_norm(y))


def score(query, q, doc, d):
    gates = dy.softmax(dy.concatenate([gate * dy.concatenate([v, dy.constant(1, 0.1 * w)]) for v, w in zip(q, query)]))
    terms = []
    for word, v in zip(query, q):
        row = dy.transpose(dy.concatenate([cosine(v, x) for x in d]))
        same = dy.transpose(dy.concatenate([dy.ones(1) if word == x else dy.zeros(1) for x in doc]))
        features = [dy.kmax_pooling(row, 1)[0], dy.mean_elems(dy.kmax_pooling(row, 3)[0])]
        features += [dy.max_dim(same, 1), dy.mean_elems(same)]
        h = W1 * dy.concatenate(features) + b1
        terms.append(W2 * dy.bmax(h * 0.1, h))
    return dy.dot_product(dy.concatenate(terms), gates)


def ids(least, most):
    return [int(w) for w in rng.randint(0, WORDS, rng.randint(least, most))]


losses = []
for step in range(16):
    query, docs = ids(1, 4), [ids(3, 8) for _ in range(3)]
    q = encoded(query)
    scores = [score(query, q, doc, encoded(doc)) for doc in docs]
    losses.append(dy.hinge(dy.concatenate(scores), 0))
    if step % 4 == 3:
        report([s.value() for s in scores])
        loss = dy.esum(losses)
        report(loss.scalar_value())
        loss.backward()
        trainer.update()
        # On the graph of before: what the builder and the collection hand out shows the numbers of now.
        forward = rnn.builder_layers[0][0].get_parameters()[0]
        report([p.npvalue().sum() for p in forward] + [p.expr().npvalue().sum() for p in forward])
        report([p.npvalue().sum() for p in m.parameters_list()])
        report([gate.npvalue().sum(), W1.expr().npvalue().sum(), b1.as_array().sum()])
        dy.renew_cg()
        losses = []
finish()
