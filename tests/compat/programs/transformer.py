"""Self-attention over matrices: heads by pick_range, causal masks of -1e9, layer_norm column by column, label smoothing, warm-up."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, D, HEADS, FF, LAYERS = 20, 8, 2, 16, 2
m = dy.ParameterCollection()
E, P = m.add_lookup_parameters((V, D)), m.add_lookup_parameters((10, D))
layers = []
for _ in range(LAYERS):
    pc = m.add_subcollection("layer")
    layer = {n: pc.add_parameters((D, D), name=n) for n in ("q", "k", "v", "o")}
    layer.update(
        w1=pc.add_parameters((FF, D)),
        b1=pc.add_parameters(FF, init=0),
        w2=pc.add_parameters((D, FF)),
        b2=pc.add_parameters(D, init=0),
    )
    layer.update(g=pc.add_parameters(D, init=1), b=pc.add_parameters(D, init=0), g2=pc.add_parameters(D, init=dy.ConstInitializer(1)),
                 bb=pc.add_parameters(D, init=dy.ConstInitializer(0)))  # fmt: skip
    layers.append(layer)
W, c = m.add_parameters((V, D)), m.add_parameters(V, init=0.0)
start(m)
trainer = dy.AdamTrainer(m, 1e-3, 0.9, 0.98, 1e-9)


def norm(x, g, b):
    cols = [dy.layer_norm(dy.pick(x, t, dim=1), g, b) for t in range(x.dim()[0][1])]
    return dy.concatenate_cols(cols)


def attend(x, layer, mask):
    q, k, v = (layer[n] * x for n in "qkv")
    outs, size = [], D // HEADS
    for h in range(HEADS):
        part = [dy.pick_range(y, h * size, (h + 1) * size) for y in (q, k, v)]
        scores = dy.transpose(part[1]) * part[0] / np.sqrt(size)
        outs.append(part[2] * dy.softmax(scores + mask))
    return layer["o"] * dy.concatenate(outs)


def loss_of(sent, smoothing):
    dy.renew_cg()
    n = len(sent) - 1
    x = dy.concatenate_cols([dy.lookup(E, w) * float(np.sqrt(D)) + P[t] for t, w in enumerate(sent[:-1])])
    mask = dy.inputTensor(np.where(np.triu(np.ones((n, n))) > 0, 0.0, -1e9))
    for layer in layers:
        x = norm(x + attend(x, layer, mask), layer["g"], layer["b"])
        ff = layer["w2"] * dy.rectify(dy.colwise_add(layer["w1"] * x, layer["b1"]))
        x = norm(x + dy.colwise_add(ff, layer["b2"]), layer["g2"], layer["bb"])
    logits = dy.colwise_add(W * x, c)
    losses = [dy.pickneglogsoftmax(dy.pick(logits, t, 1), sent[t + 1]) for t in range(n)]
    if smoothing:
        lp = dy.log_softmax(logits)
        smooth = -dy.mean_elems(lp) * n
        return dy.esum(losses) * (1 - smoothing) + smooth * smoothing
    return dy.esum(losses)


sents = [[(i * 7 + k * k + k) % V for k in range(4 + i % 4)] for i in range(6)]
for step in range(24):
    trainer.learning_rate = 0.02 * min((step + 1) ** -0.5, (step + 1) * 8**-1.5)
    loss = loss_of(sents[step % 6], 0.1 if step % 2 else 0.0)
    report(loss.value())
    loss.backward()
    trainer.update()
report([float(layers[1]["g"].as_array().mean()), float(layers[0]["bb"].as_array().sum())])
finish()
