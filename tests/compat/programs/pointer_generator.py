"""Summaries with copying: attention over the source, a mixture of two distributions, coverage, columns as one-hot matrices."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, D, H = 18, 6, 7
m = dy.ParameterCollection()
E = m.add_lookup_parameters((V, D))
enc = dy.BiRNNBuilder(1, D, 2 * H, m, dy.LSTMBuilder)
dec = dy.GRUBuilder(1, D + 2 * H, 2 * H, m)
Wh, Ws, wc, v = (m.add_parameters(s) for s in ((9, 2 * H), (9, 2 * H), (9, 1), (1, 9)))
Wo, bo = m.add_parameters((V, 4 * H)), m.add_parameters(V)
gate_w, gate_b = m.add_parameters((1, 4 * H + D)), m.add_parameters(1)
start(m)
trainer = dy.AdagradTrainer(m, 0.05)
trainer.set_clip_threshold(2.0)


def loss_of(source, target):
    dy.renew_cg()
    states = dy.concatenate_cols(enc.transduce([E[w] for w in source]))
    keys = Wh * states
    copy = dy.inputTensor(np.eye(V)[source].T)
    coverage = dy.zeros((len(source),))
    state = dec.initial_state([dy.tanh(dy.sum_dim(states, [1]))])
    context = dy.vecInput(2 * H)
    context.set([0.0] * 2 * H)
    previous, losses, covered = E[0], [], []
    for word in target:
        state = state.add_input(dy.concatenate([previous, context]))
        s = state.output()
        scores = v * dy.tanh(dy.colwise_add(keys + wc * dy.transpose(coverage), Ws * s))
        attention = dy.softmax(dy.reshape(scores, (len(source),)))
        context = states * attention
        both = dy.concatenate([s, context])
        p_vocab = dy.softmax(dy.affine_transform([bo, Wo, both]))
        p_gen = dy.logistic(dy.affine_transform([gate_b, gate_w, dy.concatenate([both, previous])]))
        p = dy.cmult(p_vocab, p_gen) + dy.cmult(copy * attention, -p_gen + 1)
        losses.append(-dy.log(dy.pick(p, word) + 1e-12))
        covered.append(dy.sum_elems(dy.bmin(attention, coverage)))
        coverage = coverage + attention
        previous = E[word]
    return dy.esum(losses) / len(losses), dy.esum(covered) / len(covered)


pairs = [([(i * 3 + k * k) % V for k in range(4 + i % 3)], [(i * 3 + k) % V for k in range(3)]) for i in range(6)]
for epoch in range(4):
    for source, target in pairs:
        nll, coverage_loss = loss_of(source, target)
        loss = nll + coverage_loss * (0.5 if epoch > 1 else 0.0)
        report([nll.value(), coverage_loss.value(), loss.scalar_value()])
        loss.backward()
        trainer.update()
finish()
