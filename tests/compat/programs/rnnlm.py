"""Language models: add_input and transduce, softmax by hand, dy.save and dy.load."""

import os
import sys

import dynet as dy
from harness import finish, report, start

TEXT = "the cat sat on the mat and the dog sat on the cat".split()
VOCAB = sorted(set(TEXT))
ids = [VOCAB.index(w) for w in TEXT]
for Builder in (dy.SimpleRNNBuilder, dy.LSTMBuilder, dy.GRUBuilder, dy.CoupledLSTMBuilder):
    m = dy.ParameterCollection()
    builder = Builder(2, 6, 9, m)
    table = m.add_lookup_parameters((len(VOCAB), 6), init="uniform", scale=0.5)
    R, bias = m.add_parameters((len(VOCAB), 9)), m.add_parameters(len(VOCAB))
    saved, sys.argv[1] = sys.argv[1], sys.argv[1] + Builder.__name__
    start(m)
    sys.argv[1] = saved
    trainer = dy.AdagradTrainer(m, 0.1, 1e-4)  # without eps the first steps follow the sign of rounding errors
    trainer.set_clip_threshold(0.5)
    for epoch in range(4):
        dy.renew_cg()
        state = builder.initial_state()
        errors = []
        for now, after in zip(ids, ids[1:]):
            state = state.add_input(table[now])
            errors.append(dy.pickneglogsoftmax(bias + R * state.output(), after))
        loss = dy.esum(errors)
        report(loss.value())
        loss.backward()
        trainer.update()

        dy.renew_cg()
        outs = builder.initial_state().transduce([table[i] for i in ids[:-1]])
        scores = [dy.affine_transform([bias, R, o]) for o in outs]
        loss = dy.esum([dy.pickneglogsoftmax(s, t) for s, t in zip(scores, ids[1:])])
        report(loss.scalar_value())
        loss.backward()
        trainer.update()
    dy.save(sys.argv[2] + ".dy", [builder, table, R, bias])
    m2 = dy.ParameterCollection()
    builder2, table2, R2, bias2 = dy.load(sys.argv[2] + ".dy", m2)
    for end in (".data", ".meta"):
        os.remove(sys.argv[2] + ".dy" + end)
    dy.renew_cg()
    s = builder2.initial_state().add_inputs([table2[i] for i in ids[:3]])
    report((R2 * s[-1].output() + bias2).vec_value())
    report(s[-1].prev().output().vec_value())
    report([x for h in s[-1].h() for x in h.vec_value()])
finish()
