"""Hierarchical attention over sentences, minimum risk by sampling from npvalue(), stateful RNN reuse, batches of ragged lists."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, D, H, CLASSES = 20, 5, 4, 3
m = dy.ParameterCollection()
E = m.add_lookup_parameters((V, D), init="normal", mean=0.0, std=0.3)
words, sents = dy.BiRNNBuilder(1, D, 2 * H, m, dy.GRUBuilder), dy.BiRNNBuilder(1, 2 * H, 2 * H, m, dy.SimpleRNNBuilder)
Ww, bw, uw = m.add_parameters((6, 2 * H)), m.add_parameters(6), m.add_parameters((6,))
W, b = m.add_parameters((CLASSES, 2 * H)), m.add_parameters(CLASSES)
start(m)
trainer = dy.CyclicalSGDTrainer(m, learning_rate_min=0.01, learning_rate_max=0.2, step_size=4.0, gamma=0.9)
rng = np.random.RandomState(3)


def attend(states):
    matrix = dy.concatenate(states, d=1)
    keys = dy.tanh(dy.affine_transform([bw, Ww, matrix]) if len(states) > 1 else dy.colwise_add(Ww * matrix, bw))
    weights = dy.softmax(dy.transpose(keys) * uw)
    return dy.reshape(matrix * weights, (2 * H,)), weights


def scores(document):
    vectors = [attend(words.transduce([E[w] for w in sent]))[0] for sent in document]
    top, weights = attend(sents.transduce(vectors))
    return W * top + b, weights


def minimum_risk(logits, label, samples=4):
    probs = dy.softmax(logits)
    p = probs.npvalue()
    picked = sorted(set(rng.choice(CLASSES, samples, p=p / p.sum()).tolist()) | {label})
    chosen = dy.select_rows(probs, picked)
    q = dy.cdiv(chosen, dy.sum_elems(chosen))
    risks = dy.inputTensor([float(abs(k - label)) for k in picked])
    return dy.dot_product(q, risks)


documents = [[[(i * j + k + j) % V for k in range(1 + (i + j) % 4)] for j in range(1 + i % 3)] for i in range(7)]
for epoch in range(3):
    for i in range(0, 7, 2):
        dy.renew_cg()
        losses = []
        for k, document in enumerate(documents[i : i + 2]):
            logits, weights = scores(document)
            losses.append(dy.pickneglogsoftmax(logits, k) if epoch == 0 else minimum_risk(logits, (i + k) % CLASSES))
            report([float(v) for v in np.ravel(weights.value())])
        loss = dy.sum_batches(dy.concatenate_to_batch(losses)) / len(losses)
        report(loss.scalar_value())
        loss.backward()
        trainer.update()
    report(float(trainer.learning_rate))
finish()
