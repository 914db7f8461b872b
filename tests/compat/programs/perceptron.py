"""Structured perceptron and hinge: decoding with margins by value(), the loss of what was decoded, no loss when it is right."""

import dynet as dy
import numpy as np
from harness import finish, report, start

TAGS, H = 4, 10
m = dy.ParameterCollection()
E = m.add_lookup_parameters((12, 6))
rnn = dy.BiRNNBuilder(1, 6, 2 * H, m, dy.GRUBuilder)
W, b, T = m.add_parameters((TAGS, 2 * H)), m.add_parameters(TAGS), m.add_lookup_parameters((TAGS + 1, TAGS))
start(m)
trainer = dy.SimpleSGDTrainer(m, learning_rate=0.05)


def emissions(sent):
    dy.renew_cg()
    return [dy.affine_transform([b, W, h]) for h in rnn.transduce([dy.lookup(E, w) for w in sent])]


def decode(scores, gold=None):
    arrays, table = [s.npvalue() for s in scores], [T[t].vec_value() for t in range(TAGS + 1)]
    beam = [(0.0, [TAGS])]
    for i, a in enumerate(arrays):
        step = []
        for total, path in beam:
            for tag in range(TAGS):
                margin = 1.0 if gold is not None and gold[i] != tag else 0.0
                step.append((total + table[path[-1]][tag] + a[tag] + margin, path + [tag]))
        beam = sorted(step, key=lambda p: -p[0])[:6]
    return beam[0][1][1:]


def path_score(scores, path):
    parts = [dy.pick(s, t) for s, t in zip(scores, path)]
    parts += [T[a][b] for a, b in zip([TAGS] + path, path)]
    return dy.esum(parts)


sents = [[(i * 5 + k * k) % 12 for k in range(3 + i % 3)] for i in range(8)]
for epoch in range(6):
    wrong = 0
    for i, sent in enumerate(sents):
        gold = [(w * 2 + epoch // 3) % TAGS for w in sent]
        scores = emissions(sent)
        guess = decode(scores, gold if epoch % 2 else None)
        if guess == gold:
            continue
        wrong += sum(a != c for a, c in zip(guess, gold))
        loss = path_score(scores, guess) - path_score(scores, gold)
        if epoch % 2:
            loss = dy.emax([dy.scalarInput(0), loss + 1])
        report(loss.value())
        loss.backward()
        trainer.update()
    report(wrong)
report([float(np.mean(s.npvalue())) for s in emissions(sents[2])])
finish()
