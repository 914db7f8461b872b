"""Arc-hybrid parser: a decision from npvalue() at every step, hinge losses gathered over sentences, padding, save and populate."""

import os
import sys

import dynet as dy
import numpy as np
from harness import finish, report, start

D, H, REL, K = 6, 7, 2, 3
m = dy.Model()
trainer = dy.MomentumSGDTrainer(m, 0.01)
words = m.add_lookup_parameters((16, D))
fwd, bwd = (dy.LSTMBuilder(1, D, H, m) for _ in range(2))
pad_word, pad_vec = m.add_parameters(D), m.add_parameters(2 * H)
W1, b1 = m.add_parameters((10, 4 * 2 * H)), m.add_parameters(10)
W2, b2 = m.add_parameters((2 * REL + 1, 10)), m.add_parameters(2 * REL + 1)
start(m)


def encode(sent):
    xs = [words[w] if w % 5 else dy.parameter(pad_word) for w in sent]
    fs = [s.output() for s in fwd.initial_state().add_inputs(xs)]
    bs = [s.output() for s in bwd.initial_state().add_inputs(reversed(xs))]
    return [dy.concatenate(list(p)) for p in zip(fs, reversed(bs))]


def evaluate(vecs, stack, buf):
    empty = dy.tanh(dy.parameter(pad_vec))
    top = [vecs[i] for i in stack[-K:]]
    top = [empty] * (K - len(top)) + top
    first = vecs[buf] if buf < len(vecs) else empty
    x = dy.concatenate(top + [first])
    return dy.parameter(W2) * dy.tanh(dy.parameter(W1) * x + dy.parameter(b1)) + dy.parameter(b2)


def legal(stack, buf, n):
    out = [buf < n]
    out += [len(stack) > 0 and buf < n] * REL
    return out + [len(stack) > 1] * REL


def apply(action, stack, buf, heads):
    if action == 0:
        stack.append(buf)
        return buf + 1
    child = stack.pop()
    heads[child] = (buf if action <= REL else stack[-1], action)
    return buf


def run(sent, gold=None):
    vecs, stack, buf, heads, errs = encode(sent), [], 0, {}, []
    while buf < len(sent) or len(stack) > 1:
        allowed = legal(stack, buf, len(sent))
        if not any(allowed):
            break
        expr = evaluate(vecs, stack, buf)
        scores = np.where(allowed, expr.npvalue(), -np.inf)
        best = int(np.argmax(scores))
        if gold is not None:
            good = [a for a in range(len(scores)) if allowed[a] and (a + len(stack) + sent[0]) % 2 == gold]
            good = good or [best]
            g = max(good, key=lambda a: scores[a])
            bad = [a for a in range(len(scores)) if allowed[a] and a not in good]
            w = max(bad, key=lambda a: scores[a]) if bad else g
            if w != g and scores[w] + 1 > scores[g]:
                errs.append(expr[w] - expr[g] + 1)
            best = g
        buf = apply(best, stack, buf, heads)
    return heads, errs


sents = [[(i * 3 + k * k + k) % 16 for k in range(3 + i % 4)] for i in range(9)]
for epoch in range(2):
    gathered = []
    dy.renew_cg()
    for i, sent in enumerate(sents):
        heads, errs = run(sent, gold=i % 2)
        gathered += errs
        if len(gathered) > 6:
            loss = dy.esum(gathered)
            report(loss.scalar_value())
            loss.backward()
            trainer.update()
            gathered = []
            dy.renew_cg()
    path = sys.argv[2] + ".params"
    m.save(path)
    before = pad_vec.as_array().sum()
    pad_vec.zero()
    m.populate(path)
    os.remove(path)
    report([before, pad_vec.as_array().sum()])
for sent in sents[:4]:
    dy.renew_cg()
    heads, _ = run(sent)
    report([float(h) for k in sorted(heads) for h in heads[k]] or [-1.0])
finish()
