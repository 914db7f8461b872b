"""Two tasks and a domain that must not be told: flip_gradient, frozen parts, two trainers on sub-collections, update=False."""

import dynet as dy
import numpy as np
from harness import finish, report, start

root = dy.ParameterCollection()
shared, private = root.add_subcollection("shared"), root.add_subcollection("private")
W, b = shared.add_parameters((8, 5)), shared.add_parameters(8)
E = shared.add_lookup_parameters((6, 5))
tasks = [(private.add_parameters((3, 8)), private.add_parameters(3)) for _ in range(2)]
D, d = private.add_parameters((1, 8)), private.add_parameters(1)
start(root)
trainers = [dy.SimpleSGDTrainer(shared, 0.1), dy.MomentumSGDTrainer(private, 0.05)]
both = dy.AmsgradTrainer(root, 0.01)

for step in range(30):
    dy.renew_cg()
    domain, word = step % 2, step % 6
    x = dy.inputVector(np.sin(np.arange(5) * (step + 1)).tolist()) + dy.lookup(E, word, update=step % 3 != 0)
    h = dy.tanh(dy.affine_transform([b, W, x]))
    w, c = tasks[domain]
    loss = dy.pickneglogsoftmax(w * h + c, step % 3)
    guess = dy.logistic(D * dy.flip_gradient(h) + d)
    adversary = dy.binary_log_loss(guess, dy.scalarInput(domain))
    fixed = dy.squared_distance(dy.nobackprop(h), dy.const_parameter(b) * 0.1)
    hinge = dy.hinge(w * h + c, step % 3, 0.5)
    total = loss + adversary * 0.3 + fixed * 0.01 + dy.scale_gradient(hinge, 0.2)
    report([loss.value(), adversary.value(), fixed.value(), total.scalar_value()])
    total.backward()
    W.scale_gradient(0.5)
    if step < 20:
        for t in trainers:
            t.update()
    else:
        both.update()
    if step == 10:
        trainers[1].restart()
        trainers[0].restart(0.05)
report([W.as_array().sum(), E.as_array().sum(), D.as_array().sum()])
report([float(t.learning_rate) for t in trainers])
finish()
