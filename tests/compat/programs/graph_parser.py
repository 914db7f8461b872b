"""First-order graph parser: scores of all arcs one by one, loss-augmented, by value(); losses collected in a Python list."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, H, REL = 6, 7, 3
model = dy.ParameterCollection()
trainer = dy.AdamTrainer(model)
wlookup, plookup = model.add_lookup_parameters((20, D)), model.add_lookup_parameters((5, 3))
rnns = [dy.VanillaLSTMBuilder(1, D + 3, H, model), dy.VanillaLSTMBuilder(1, D + 3, H, model)]
second = dy.BiRNNBuilder(2, 2 * H, 8, model, dy.LSTMBuilder)
head, mod, bias = model.add_parameters((9, 8)), model.add_parameters((9, 8)), model.add_parameters(9)
out = model.add_parameters((1, 9), init=0.3)
rhead, rmod, rbias = model.add_parameters((9, 8)), model.add_parameters((9, 8)), model.add_parameters(9)
rout, routbias = model.add_parameters((REL, 9)), model.add_parameters(REL)
start(model)


def represent(sentence):
    vecs = [dy.concatenate([wlookup[int(w)], plookup[int(p)]]) for w, p in sentence]
    f, b = rnns[0].initial_state(), rnns[1].initial_state()
    fs, bs = [], []
    for x, y in zip(vecs, reversed(vecs)):
        f, b = f.add_input(x), b.add_input(y)
        fs.append(f.output())
        bs.append(b.output())
    return second.transduce([dy.concatenate([x, y]) for x, y in zip(fs, bs[::-1])])


def arc_scores(vecs):
    heads = [dy.parameter(head) * v for v in vecs]
    mods = [dy.parameter(mod) * v for v in vecs]
    exprs = [[dy.parameter(out) * dy.tanh(h + x + dy.parameter(bias)) for x in mods] for h in heads]
    return np.array([[e.scalar_value() for e in row] for row in exprs]), exprs


def greedy_heads(scores, gold=None):
    scores = scores.copy()
    if gold is not None:
        scores += 1.0
        for m, h in enumerate(gold):
            if m:
                scores[h, m] -= 1.0
    np.fill_diagonal(scores, -np.inf)
    return [0] + [int(np.argmax(scores[:, m])) for m in range(1, len(scores))]


def relations(vecs, h, m):
    return dy.parameter(rout) * dy.tanh(rhead * vecs[h] + rmod * vecs[m] + rbias) + routbias


sentences = [([((i * k + 1) % 20, k % 5) for k in range(3 + i % 4)], i) for i in range(8)]
for epoch in range(2):
    errs, lerrs = [], []
    dy.renew_cg()
    for sentence, i in sentences:
        gold = [0] + [(m + i) % m if m > 1 else 0 for m in range(1, len(sentence))]
        vecs = represent(sentence)
        scores, exprs = arc_scores(vecs)
        report([float(np.sum(scores))])
        for m in range(1, len(sentence)):
            r = relations(vecs, gold[m], m)
            values = r.vec_value()
            right = (m + i) % REL
            wrong = max((v, k) for k, v in enumerate(values) if k != right)[1]
            if values[right] < values[wrong] + 1.0:
                lerrs.append(r[wrong] - r[right])
        guess = greedy_heads(scores, gold)
        errs += [exprs[h][m] - exprs[g][m] for m, (h, g) in enumerate(zip(guess, gold)) if h != g]
        if i % 2 and (errs or lerrs):
            loss = dy.esum(errs + lerrs)
            report([float(loss.npvalue()[0]) if loss.dim()[0] == (1,) else float(loss.scalar_value()), len(errs)])
            loss.backward()
            trainer.update()
            errs, lerrs = [], []
            dy.renew_cg()
finish()
