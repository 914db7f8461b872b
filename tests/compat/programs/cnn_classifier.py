"""Sentence classifiers: convolution over words with pooling, bag of words, a deep averaging network; weight decay by hand."""

import dynet as dy
import numpy as np
from harness import finish, report, start

V, D, F, WIN, CLASSES = 30, 8, 6, 3, 3
m = dy.Model()
E = m.add_lookup_parameters((V, 1, 1, D), init=dy.UniformInitializer(0.5))
conv, conv_b = m.add_parameters((1, WIN, D, F)), m.add_parameters(F)
W, b = m.add_parameters((CLASSES, F)), m.add_parameters((CLASSES), init=dy.ConstInitializer(0.0))
bow, bow_b = m.add_lookup_parameters((V, CLASSES)), m.add_parameters(CLASSES)
flat = m.add_lookup_parameters((V, D))
deep = [(m.add_parameters((7, D)), m.add_parameters(7)), (m.add_parameters((CLASSES, 7)), m.add_parameters(CLASSES))]
start(m)
trainers = [dy.AdamTrainer(m, alpha=0.01, beta_1=0.8, beta_2=0.99, eps=1e-6), dy.AdagradTrainer(m, 0.05)]
for t in trainers:
    t.set_clip_threshold(2.0)


def cnn(words):
    dy.renew_cg()
    words = words + [0] * max(0, WIN - len(words))
    x = dy.concatenate([dy.lookup(E, w) for w in words], d=1)
    y = dy.rectify(dy.conv2d_bias(x, conv, conv_b, stride=(1, 1)))
    y = dy.max_dim(y, d=1)
    return W * dy.reshape(y, (F,)) + b


def same_padding(words):
    dy.renew_cg()
    x = dy.concatenate([dy.lookup(E, w) for w in words], 1)
    y = dy.conv2d(x, conv, [1, 2], is_valid=False)
    pooled = dy.maxpooling2d(y, [1, y.dim()[0][1]], [1, 1], True)
    return dy.affine_transform([b, W, dy.reshape(pooled, (F,))])


def bag(words):
    dy.renew_cg()
    return dy.esum([bow[w] for w in words]) + bow_b


def average(words):
    dy.renew_cg()
    x = dy.average([flat[w] for w in words])
    for i, (w, c) in enumerate(deep):
        x = w * x + c
        if i == 0:
            x = dy.elu(x)
    return x


data = [([(i * 7 + k * k + i * k) % V for k in range(2 + i % 5)], i % CLASSES) for i in range(10)]
for epoch in range(3):
    for words, y in data:
        for k, network in enumerate((cnn, same_padding, bag, average)):
            loss = dy.pickneglogsoftmax(network(words), y)
            if network is average:
                loss = loss + dy.squared_norm(deep[0][0]) * 0.001 + 0.01 * float(epoch)
            report(loss.scalar_value())
            loss.backward()
            trainers[k % 2].update()
for words, y in data[:3]:
    report([float(np.argmax(network(words).npvalue())) for network in (cnn, same_padding, bag, average)])
finish()
