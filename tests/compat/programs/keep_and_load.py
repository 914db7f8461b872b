"""Files: dy.save of builders, tables and layers of the user's own, load into another collection, keys, populate, errors caught."""

import os
import sys

import dynet as dy
import numpy as np
from harness import finish, report, start

BASE = sys.argv[2] + ".saved"


class Layer:
    """What dy.save asks of a class of the user's own: param_collection, spec, from_spec."""

    def __init__(self, model, size_in, size_out):
        self.model = model.add_subcollection("layer")
        self.W, self.b = (
            self.model.add_parameters((size_out, size_in)),
            self.model.add_parameters(size_out, name="bias"),
        )
        self.spec = (size_in, size_out)

    def param_collection(self):
        return self.model

    @classmethod
    def from_spec(cls, spec, model):
        return cls(model, *spec)

    def __call__(self, x):
        return dy.affine_transform([self.b, self.W, x])


m = dy.Model()
E, extra = m.add_lookup_parameters((9, 4), name="words"), m.add_parameters((3, 3), name="extra")
lstm, birnn, layer = dy.LSTMBuilder(1, 4, 5, m), dy.BiRNNBuilder(1, 5, 6, m, dy.GRUBuilder), Layer(m, 6, 3)
start(m)
trainer = dy.SimpleSGDTrainer(m, 0.1)


def loss_of(parts, sent):
    E, lstm, birnn, layer, extra = parts
    dy.renew_cg()
    hs = lstm.initial_state().transduce([E[w] for w in sent])
    return dy.esum([dy.pickneglogsoftmax(extra * layer(h), w % 3) for h, w in zip(birnn.transduce(hs), sent)])


def train(parts, steps):
    for step in range(steps):
        loss = loss_of(parts, [(step * k + k) % 9 for k in range(1, 5)])
        report(loss.value())
        loss.backward()
        trainer.update()


parts = (E, lstm, birnn, layer, extra)
train(parts, 8)
dy.save(BASE, parts)
m.save(BASE + ".all")
lstm.param_collection().save(BASE + ".part", "/lstm")
extra.save(BASE + ".part", "/one", append=True)
E.save(BASE + ".part", append=True)

other = dy.ParameterCollection()
other.add_parameters(2)
loaded = dy.load(BASE, other)
report(loss_of(loaded, [1, 2, 3]).value())
generated = list(dy.load_generator(BASE, dy.ParameterCollection()))
report([loss_of(generated, [4, 5]).value(), len(generated)])

train(parts, 3)
changed = loss_of(parts, [1, 2, 3]).value()
m.populate(BASE + ".all")
report([changed, loss_of(parts, [1, 2, 3]).value()])
train(parts, 2)
lstm.param_collection().populate(BASE + ".part", "/lstm")
extra.populate(BASE + ".part", "/one")
E.populate(BASE + ".part", "/words")
report(loss_of(parts, [1, 2, 3]).value())

caught = []
for wrong in (
    lambda: m.populate(BASE + ".none"),
    lambda: dy.ParameterCollection().add_parameters((2, 2)).populate(BASE + ".part", "/one"),
    lambda: extra.populate(BASE + ".part", "/two"),
    lambda: loss_of(parts, [99]).value(),
    lambda: dy.esum([]),
    lambda: extra * E[1],
    lambda: dy.inputTensor(None),
):
    try:
        wrong()
        caught.append(0)
    except RuntimeError:
        caught.append(1)
    except (ValueError, AssertionError):
        caught.append(2)
    except TypeError:
        caught.append(3)
dy.renew_cg()
old = E[1]
dy.renew_cg()
try:
    old.value()
except RuntimeError:
    caught.append(4)
report(caught)
with open(BASE + ".all") as f:
    heads = [line.split() for line in f if line.startswith("#")]
report([float(h[3]) for h in heads] + [sum(len(h[1]) for h in heads), len(heads)])
report(float(np.abs(extra.as_array()).sum()))
for name in (".data", ".meta", ".all", ".part"):
    os.remove(BASE + name)
finish()
