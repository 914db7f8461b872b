"""Deep biaffine parser in batches: products of reshaped tensors, masks, leaky units, losses of many columns at once."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, H, A, REL, B, T = 6, 5, 7, 3, 3, 5
m = dy.ParameterCollection()
E = m.add_lookup_parameters((20, D), init=np.sin(np.arange(120)).reshape(20, D))
fw, bw = dy.VanillaLSTMBuilder(1, D, H, m), dy.VanillaLSTMBuilder(1, D, H, m)
Wd, bd, Wh, bh = (m.add_parameters(s, init="normal", std=0.4) if isinstance(s, tuple) else m.add_parameters(s)
                  for s in ((A, 2 * H), A, (A, 2 * H), A))  # fmt: skip
U, ub = m.add_parameters((A, A + 1), init="glorot"), m.add_parameters((REL * (A + 1), A + 1), init="he")
start(m)
trainer = dy.AdamTrainer(m, 0.01, 0.9, 0.9, 1e-8)
trainer.set_clip_threshold(5.0)


def leaky(x):
    return dy.bmax(0.1 * x if False else x * 0.1, x)


def bilinear(x, W, y, n_out, bias_y):
    """x {A,T} and y {A,T} in batches -> {T,T} or {T,n,T}."""
    (nx, seq), batch = x.dim()
    ones = dy.inputTensor(np.ones((1, seq), dtype=np.float32))
    x = dy.concatenate([x, ones]) if n_out > 1 else x
    y = dy.concatenate([y, ones]) if bias_y else y
    lin = W * y
    if n_out > 1:
        lin = dy.reshape(lin, (x.dim()[0][0], n_out * seq), batch_size=batch)
    out = dy.transpose(x) * lin
    return dy.reshape(out, (seq, n_out, seq), batch_size=batch) if n_out > 1 else out


def losses(ids, heads, rels, mask):
    dy.renew_cg()
    xs = [dy.lookup_batch(E, ids[t]) for t in range(T)]
    for builder in (fw, bw):
        builder.set_dropouts(0.0, 0.0)
    f, b = fw.initial_state(), bw.initial_state()
    fw.set_dropout_masks(B)
    bw.set_dropout_masks(B)
    fs, bs = f.transduce(xs), b.transduce(reversed(xs))
    h = dy.concatenate_cols([dy.concatenate([x, y]) for x, y in zip(fs, reversed(bs))])
    dep, head = leaky(dy.affine_transform([bd, Wd, h])), leaky(dy.affine_transform([bh, Wh, h]))
    arcs = bilinear(head, U, dep, 1, True)
    flat_mask = dy.inputTensor(mask.flatten("F")[None, :], batched=True)
    flat = dy.reshape(arcs, (T,), T * B)
    arc_losses = dy.pickneglogsoftmax_batch(flat, heads.flatten("F"))
    arc_loss = dy.sum_batches(dy.cmult(arc_losses, flat_mask))
    labels = bilinear(head, ub, dep, REL, True)
    labels = dy.reshape(labels, (T, REL), T * B)
    picked = dy.pick_batch(labels, list(heads.flatten("F")))
    rel_losses = dy.pickneglogsoftmax_batch(picked, rels.flatten("F"))
    rel_loss = dy.sum_batches(rel_losses * flat_mask)
    return arcs, arc_loss, (arc_loss + rel_loss) / float(mask.sum())


rs = np.random.RandomState(5)
for step in range(12):
    ids, heads, rels = rs.randint(0, 20, (T, B)), rs.randint(0, T, (T, B)), rs.randint(0, REL, (T, B))
    mask = (np.arange(T)[:, None] < np.array([T, 4, 3])[None, :]).astype(np.float32)
    arcs, arc_loss, loss = losses(ids, heads, rels, mask)
    report([arc_loss.scalar_value(), float(loss.value())])
    if step % 4 == 0:
        report([float(v) for v in arcs.npvalue().argmax(0).ravel()])
    loss.backward()
    trainer.update()
finish()
