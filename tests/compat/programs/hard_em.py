"""Hard EM: for each utterance the cluster that explains it best, looked for with value() while the graph grows."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, D, H, Z = 15, 6, 7, 4
m = dy.ParameterCollection()
E = m.add_lookup_parameters((V, D))
encoder, context = dy.LSTMBuilder(1, D, H, m), dy.LSTMBuilder(1, Z, H, m)
decoder = dy.GRUBuilder(1, D + H, H, m)
W, R, b = m.add_parameters((Z, H)), m.add_parameters((V, H)), m.add_parameters((V,))
start(m)
trainer = dy.AdamTrainer(m, 0.01)


def one_hots():
    return [dy.inputVector(row) for row in np.eye(Z)]


def cluster_probs(utterances):
    first = encoder.initial_state()
    return [dy.softmax(W * first.transduce([E[w] for w in u])[-1]) for u in utterances]


def log_prob(utterance, state):
    hs = decoder.initial_state().transduce([dy.concatenate([E[w], state]) for w in [0, *utterance]])
    ps = [dy.softmax(dy.affine_transform([b, R, h])) for h in hs]
    return dy.esum([dy.log(p[t]) for p, t in zip(ps, [*utterance, 1])])


def chosen(utterances, probs, hot):
    state, found = context.initial_state(), []
    for u, p in zip(utterances, probs):
        known, best, z_best = dy.nobackprop(p), dy.scalarInput(-1e9), -1
        for z in range(Z):
            h = state.add_input(hot[z]).h()[-1]
            score = dy.nobackprop(log_prob(u, h)) + dy.nobackprop(dy.log(dy.pick(known, z)))
            if score.value() > best.value():
                best, z_best = score, z
        state = state.add_input(hot[z_best])
        found.append(z_best)
    return found


def loss_of(utterances, hot):
    probs = cluster_probs(utterances)
    found = chosen(utterances, probs, hot)
    state, terms = context.initial_state(), []
    for u, p, z in zip(utterances, probs, found):
        state = state.add_input(hot[z])
        terms.append(log_prob(u, state.h()[-1]) + dy.log(dy.pick(p, index=z)))
    return -dy.esum(terms), found


rng = np.random.RandomState(5)
hot, batch = one_hots(), []
for step in range(12):
    talk = [[int(w) for w in rng.randint(2, V, rng.randint(1, 5))] for _ in range(rng.randint(1, 4))]
    loss, found = loss_of(talk, hot)
    batch.append(loss)
    report(found)
    if step % 3 == 2:
        total = dy.esum(batch)
        report(total.value())
        total.backward()
        trainer.update()
        dy.renew_cg()
        hot, batch = one_hots(), []
finish()
