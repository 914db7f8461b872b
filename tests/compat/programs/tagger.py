"""A tagger: two layers of BiRNNBuilder, characters for rare words, frozen rows, restart of the trainer, checkpoints."""

import dynet as dy
from harness import finish, report, start

DATA = [([0, 1, 2], [0, 1, 2]), ([3, 1], [0, 1]), ([2, 2, 0, 4, 1], [2, 2, 0, 1, 1])]
CHARS = [[0, 1], [1, 2, 3], [2], [3, 3, 1], [0]]
m = dy.ParameterCollection()
words, chars = m.add_lookup_parameters((5, 6)), m.add_lookup_parameters((4, 3))
cf, cb = dy.VanillaLSTMBuilder(1, 3, 3, m), dy.VanillaLSTMBuilder(1, 3, 3, m)
birnn = dy.BiRNNBuilder(2, 6, 8, m, dy.VanillaLSTMBuilder)
H, O = m.add_parameters((7, 8)), m.add_parameters((3, 7))
const = m.add_parameters(7, init=0.5)
const.set_updated(False)
start(m)
trainer = dy.SimpleSGDTrainer(m, 0.2)
trainer.set_clip_threshold(0)  # DyNet counts the piled-up gradients of frozen weights in the norm
trainer.set_sparse_updates(True)


def word(w):
    if w != 4:
        return dy.lookup(words, w, update=w != 0)
    cs = [chars[c] for c in CHARS[w]]
    f = cf.initial_state().transduce(cs)[-1]
    b = cb.initial_state().transduce(list(reversed(cs)))[-1]
    return dy.concatenate([f, b])


def loss_of(ws, ts):
    hs = birnn.transduce([word(w) for w in ws])
    return dy.esum([dy.pickneglogsoftmax(O * dy.tanh(H * h + const), t) for h, t in zip(hs, ts)])


for epoch in range(5):
    for ws, ts in DATA:
        dy.renew_cg()
        loss = loss_of(ws, ts)
        report(loss.scalar_value())
        loss.backward()
        report(float((O.grad_as_array() ** 2).sum()))
        trainer.update()
    if epoch == 2:
        trainer.restart(0.1)
report(words.row_as_array(0).tolist())
report(const.as_array().tolist())
for states in birnn.add_inputs([words[1], words[2]]) if dy.renew_cg() else ():
    report(states[0].output().vec_value() + states[1].output().vec_value())
dy.renew_cg(immediate_compute=True, check_validity=True)
report(loss_of(*DATA[0]).value())
finish()
