"""A binary tree LSTM written by hand, over several trees at a time; DynetParams before the engine starts."""

import _dynet as dy

params = dy.DynetParams()
params.set_mem(64)
params.set_random_seed(5)
params.set_autobatch(1)
params.init()
from harness import finish, report, start  # noqa: E402

TREES = [((0, 1), (2, (3, 4))), (((5, 1), 2), 0), (3, 4), ((0, (1, (2, (3, 5)))), 4)]
m = dy.ParameterCollection()
D = 6
WS = [m.add_parameters((D, D)) for _ in "iou"]
BS = [m.add_parameters(D, init=dy.ConstInitializer(0.0)) for _ in "iouf"]
US = [m.add_parameters((D, 2 * D)) for _ in "iou"]
UF = [m.add_parameters((D, D)) for _ in range(4)]
E = m.add_lookup_parameters((6, D))
OUT, OB = m.add_parameters((3, D)), m.add_parameters(3)
start(m)
trainer = dy.AdadeltaTrainer(m)


def node(tree):
    if isinstance(tree, int):
        x = E[tree]
        i, o, u = [dy.affine_transform([b, W, x]) for b, W in zip(BS, WS)]
        c = dy.cmult(dy.logistic(i), dy.tanh(u))
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c
    (h1, c1), (h2, c2) = node(tree[0]), node(tree[1])
    h = dy.concatenate([h1, h2])
    i = dy.logistic(dy.affine_transform([BS[0], US[0], h]))
    o = dy.logistic(dy.affine_transform([BS[1], US[1], h]))
    u = dy.tanh(dy.affine_transform([BS[2], US[2], h]))
    f1 = dy.logistic(dy.affine_transform([BS[3], UF[0], h1, UF[1], h2]))
    f2 = dy.logistic(dy.affine_transform([BS[3], UF[2], h1, UF[3], h2]))
    c = dy.cmult(i, u) + dy.cmult(f1, c1) + dy.cmult(f2, c2)
    return dy.cmult(o, dy.tanh(c)), c


for epoch in range(8):
    dy.renew_cg()
    losses = []
    for k, tree in enumerate(TREES):
        h, c = node(tree)
        losses.append(dy.pickneglogsoftmax(OUT * h + OB, k % 3))
    loss = dy.esum(losses) + dy.l2_norm(h) * 0.1
    report(loss.scalar_value())
    loss.backward()
    trainer.update()
    report([x.value() for x in losses])
finish()
