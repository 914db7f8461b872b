"""Tagger with a character LSTM per word and a CRF: forward sums by logsumexp over lists, Viterbi by npvalue, rows as tags."""

import dynet as dy
import numpy as np
from harness import finish, report, start

TAGS, H = 4, 8
START, STOP = TAGS, TAGS + 1
m = dy.Model()
chars, words = m.add_lookup_parameters((20, 5)), m.add_lookup_parameters((15, 6), init="uniform", scale=0.5)
char_rnns = [dy.LSTMBuilder(1, 5, 4, m) for _ in range(2)]
rnns = [dy.CoupledLSTMBuilder(1, 14, H, m) for _ in range(2)]
W, b = m.add_parameters((TAGS, 2 * H)), m.add_parameters(TAGS)
trans = m.add_lookup_parameters((TAGS + 2, TAGS + 2))
start(m)
trainer = dy.MomentumSGDTrainer(m, 0.02, 0.9)


def word_vector(w):
    cs = [chars[c] for c in ((w * 3) % 20, (w * 7 + 1) % 20, w)][: 2 + w % 2]
    f = char_rnns[0].initial_state().add_inputs(cs)[-1].output()
    g = char_rnns[1].initial_state().add_inputs(reversed(cs))[-1].output()
    return dy.concatenate([words[w], f, g])


def scores(sent):
    dy.renew_cg()
    w, bias = dy.parameter(W), dy.parameter(b)
    xs = [word_vector(x) for x in sent]
    fs = rnns[0].initial_state().transduce(xs)
    bs = rnns[1].initial_state().transduce(xs[::-1])
    pad = dy.inputVector([-1e4, -1e4])
    return [dy.concatenate([w * dy.concatenate([f, g]) + bias, pad]) for f, g in zip(fs, reversed(bs))]


def gold_score(obs, tags):
    score, tags = dy.scalarInput(0), [START] + tags
    for i, o in enumerate(obs):
        score = score + dy.pick(trans[tags[i + 1]], tags[i]) + dy.pick(o, tags[i + 1])
    return score + dy.pick(trans[STOP], tags[-1])


def all_score(obs):
    alpha = dy.inputVector([-1e4] * START + [0.0, -1e4])
    for o in obs:
        new = []
        for tag in range(TAGS + 2):
            new.append(dy.logsumexp([e for e in alpha + trans[tag]]) + dy.pick(o, tag))  # noqa: C416
        alpha = dy.concatenate(new)
    return dy.logsumexp([e for e in alpha + trans[STOP]])  # noqa: C416


def viterbi(obs):
    best, back = np.full(TAGS + 2, -1e4), []
    best[START] = 0
    rows = np.array([trans[t].npvalue() for t in range(TAGS + 2)])
    for o in obs:
        steps = best[None, :] + rows
        back.append(np.argmax(steps, 1))
        best = steps.max(1) + o.npvalue()
    path = [int(np.argmax(best + rows[STOP]))]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[:0:-1]


sents = [([(i * k + k) % 15 for k in range(1, 4 + i % 4)], i) for i in range(6)]
for epoch in range(4):
    for sent, i in sents:
        tags = [(w + i % 2) % TAGS for w in sent]
        obs = scores(sent)
        loss = all_score(obs) - gold_score(obs, tags)
        report(loss.scalar_value())
        loss.backward()
        trainer.update()
    trainer.learning_rate = trainer.learning_rate * 0.9
report(viterbi(scores(sents[3][0])))
finish()
