"""Encoder, attention, decoder: colwise_add, concatenate_cols, the truth value of expressions, greedy decoding by value()."""

import dynet as dy
import numpy as np
from harness import finish, report, start

CHARS = ["<E>"] + list("abcdef")
EOS, H, S = 0, 12, 8
m = dy.Model()
fwd, bwd = dy.LSTMBuilder(1, S, H, m), dy.LSTMBuilder(1, S, H, m)
dec = dy.LSTMBuilder(2, 2 * H + S, H, m)
embed = m.add_lookup_parameters((len(CHARS), S))
w1, w2, v = m.add_parameters((10, 2 * H)), m.add_parameters((10, 4 * H)), m.add_parameters((1, 10))
R, r = m.add_parameters((len(CHARS), H)), m.add_parameters(len(CHARS))
start(m)
trainer = dy.AdamTrainer(m)


def run_lstm(state, inputs):
    out = []
    for x in inputs:
        state = state.add_input(x)
        out.append(state.output())
    return out


def encode(word):
    xs = [dy.lookup(embed, CHARS.index(c)) for c in word] + [embed[EOS]]
    f = run_lstm(fwd.initial_state(), xs)
    b = list(reversed(run_lstm(bwd.initial_state(), reversed(xs))))
    return dy.concatenate_cols([dy.concatenate(list(p)) for p in zip(f, b)])


def attend(cols, state, w1dt):
    w2dt = dy.parameter(w2) * dy.concatenate(list(state.s()))
    scores = dy.transpose(dy.parameter(v) * dy.tanh(dy.colwise_add(w1dt, w2dt)))
    return cols * dy.softmax(scores)


def loss_of(source, target):
    dy.renew_cg()
    cols = encode(source)
    w1dt = None
    last = embed[EOS]
    state = dec.initial_state().add_input(dy.concatenate([dy.vecInput(2 * H), last]))
    parts = []
    for c in [CHARS.index(c) for c in target] + [EOS]:
        w1dt = w1dt or dy.parameter(w1) * cols
        state = state.add_input(dy.concatenate([attend(cols, state, w1dt), last]))
        probs = dy.softmax(dy.parameter(R) * state.output() + dy.parameter(r))
        last = embed[c]
        parts.append(-dy.log(dy.pick(probs, c)))
    return dy.esum(parts)


def generate(source):
    dy.renew_cg()
    cols = encode(source)
    w1dt = w1 * cols
    last, out = embed[EOS], []
    state = dec.initial_state().add_input(dy.concatenate([dy.vecInput(2 * H), last]))
    for _ in range(2 * len(source)):
        state = state.add_input(dy.concatenate([attend(cols, state, w1dt), last]))
        best = int(np.argmax(dy.softmax(R * state.output() + r).npvalue()))
        if best == EOS:
            break
        out.append(best)
        last = embed[best]
    return out


for step in range(25):
    word = "".join(CHARS[1 + (step * k) % 6] for k in range(1, 3 + step % 4))
    loss = loss_of(word, word[::-1])
    report(loss.value())
    loss.backward()
    trainer.update()
report(len(generate("abc")))
report(generate("fed") or [-1])
finish()
