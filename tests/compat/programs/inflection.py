"""Hard attention for inflection: an encoder of letters, a pointer that moves on a step sign, features as vectors, beam by log."""

import math

import dynet as dy
import numpy as np
from harness import finish, report, start

ALPHABET = ["<s>", "</s>", "STEP"] + list("abcdefgh")
C2I = {c: i for i, c in enumerate(ALPHABET)}
D, H = 6, 8
model = dy.Model()
char_lookup, feat_lookup = model.add_lookup_parameters((len(ALPHABET), D)), model.add_lookup_parameters((4, 3))
R, bias = model.add_parameters((len(ALPHABET), H)), model.add_parameters(len(ALPHABET))
enc_f, enc_b = dy.CoupledLSTMBuilder(1, D, 5, model), dy.CoupledLSTMBuilder(1, D, 5, model)
decoder = dy.LSTMBuilder(2, 10 + D + 3, H, model)
start(model)
trainer = dy.AdadeltaTrainer(model)


def encode(word):
    chars = [char_lookup[C2I[c]] for c in ["<s>"] + list(word) + ["</s>"]]
    f, b = enc_f.initial_state(), enc_b.initial_state()
    outs_f, outs_b = [], []
    for x, y in zip(chars, reversed(chars)):
        f, b = f.add_input(x), b.add_input(y)
        outs_f.append(f.output())
        outs_b.append(b.output())
    return [dy.concatenate([x, y]) for x, y in zip(outs_f, reversed(outs_b))]


def aligned(word, target):
    out = []
    for i, c in enumerate(target):
        out.append(c)
        if i < len(word):
            out.append("STEP")
    return out + ["</s>"]


def loss_of(word, feat, target):
    dy.renew_cg()
    r, b = dy.parameter(R), dy.parameter(bias)
    blstm, features = encode(word), feat_lookup[feat]
    state, previous, i, losses = decoder.initial_state(), char_lookup[C2I["<s>"]], 0, []
    for c in aligned(word, target):
        state = state.add_input(dy.concatenate([blstm[i], previous, features]))
        probs = dy.softmax(r * state.output() + b)
        losses.append(-dy.log(dy.pick(probs, C2I[c])))
        previous = char_lookup[C2I[c]]
        if c == "STEP" and i < len(blstm) - 1:
            i += 1
    return dy.average(losses)


def predict(word, feat, beam=3):
    dy.renew_cg()
    r, b = dy.parameter(R), dy.parameter(bias)
    blstm, features = encode(word), feat_lookup[feat]
    hypotheses, done = [(0.0, [], decoder.initial_state(), 0)], []
    for _ in range(8):
        new = []
        for score, letters, state, i in hypotheses:
            last = char_lookup[C2I[letters[-1] if letters else "<s>"]]
            following = state.add_input(dy.concatenate([blstm[i], last, features]))
            probs = dy.softmax(r * following.output() + b).npvalue()
            for k in np.argsort(probs)[::-1][:beam]:
                c = ALPHABET[int(k)]
                item = (score + math.log(probs[k]), letters + [c], following, min(i + (c == "STEP"), len(blstm) - 1))
                (done if c == "</s>" else new).append(item)
        hypotheses = sorted(new, key=lambda h: -h[0])[:beam]
    best = max(done + hypotheses, key=lambda h: h[0] / len(h[1]))
    return best[0], [C2I[c] for c in best[1]]


words = [("abc", 0, "abcd"), ("hag", 1, "gah"), ("bed", 2, "beds"[:3] + "a"), ("face", 3, "fac"), ("deaf", 0, "deafh")]
for epoch in range(8):
    total = 0.0
    for word, feat, target in words:
        loss = loss_of(word, feat, target)
        total += loss.value()
        loss.backward()
        trainer.update()
    report(total / len(words))
score, letters = predict("cab", 1)
report([score] + [float(k) for k in letters])
finish()
