"""A padded language model: lookup_batch, affine_transform, masks by inputVector and reshape, sum_batches."""

import dynet as dy
from harness import finish, report, start

SENTENCES = [[1, 2, 3, 4, 0], [2, 2, 5, 0], [3, 1, 0], [4, 5, 1, 2, 0]]
m = dy.ParameterCollection()
lstm = dy.VanillaLSTMBuilder(1, 7, 10, m, forget_bias=0.5)
table = m.add_lookup_parameters((6, 7))
W, b = m.add_parameters((6, 10)), m.add_parameters(6)
start(m)
trainer = dy.RMSPropTrainer(m)
for _ in range(8):
    dy.renew_cg()
    n = len(SENTENCES)
    length = max(map(len, SENTENCES))
    words = [[s[k] if k < len(s) else 0 for s in SENTENCES] for k in range(length)]
    masks = [[1.0 if k < len(s) else 0.0 for s in SENTENCES] for k in range(length)]
    state = lstm.initial_state()
    state = state.add_input(dy.lookup_batch(table, [0] * n))
    losses = []
    for w, mask in zip(words, masks):
        score = dy.affine_transform([b, W, state.output()])
        loss = dy.pickneglogsoftmax_batch(score, w)
        if 0.0 in mask:
            loss = loss * dy.reshape(dy.inputVector(mask), (1,), n)
        losses.append(loss)
        state = state.add_input(dy.lookup_batch(table, w))
    total = dy.sum_batches(dy.esum(losses)) / n
    report(total.value())
    total.backward()
    trainer.update()
finish()
