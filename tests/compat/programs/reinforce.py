"""Q learning with a target network: parameters_list and set_value, layer_norm, pick_batch, constant, clipping of weights."""

import dynet as dy
import numpy as np
from harness import finish, report, start


class Net:
    def __init__(self, pc):
        self.pc = pc.add_subcollection("net")
        self.W1, self.b1 = self.pc.add_parameters((8, 4)), self.pc.add_parameters(8)
        self.g, self.c = self.pc.add_parameters(8, init=dy.ConstInitializer(1)), self.pc.add_parameters(8, init=0)
        self.W2, self.b2 = self.pc.add_parameters((3, 8)), self.pc.add_parameters(3)

    def __call__(self, obs):
        x = dy.inputTensor(obs, batched=True) if obs.ndim > 1 else dy.inputVector(obs)
        h = dy.tanh(dy.layer_norm(dy.affine_transform([self.b1, self.W1, x]), self.g, self.c))
        return dy.affine_transform([self.b2, self.W2, h])

    def update_from(self, other):
        for mine, theirs in zip(self.pc.parameters_list(), other.pc.parameters_list()):
            mine.set_value(theirs.as_array())


m1, m2 = dy.ParameterCollection(), dy.ParameterCollection()
net, target = Net(m1), Net(m2)
start(m1)
target.update_from(net)
trainer = dy.AdamTrainer(m1, 0.02)
rng = np.random.RandomState(4)
for step in range(30):
    dy.renew_cg()
    obs, after, action, reward = rng.randn(4, 6), rng.randn(4, 6), rng.randint(0, 3, 6), rng.rand(6)
    best = dy.max_dim(target(after))
    wanted = dy.inputTensor(reward.reshape(1, 6), batched=True) + best * 0.9
    wanted = dy.nobackprop(wanted)
    q = dy.pick_batch(net(obs), list(action))
    loss = dy.mean_batches(dy.pow(wanted - q, dy.constant(1, 2)))
    report(loss.value())
    loss.backward()
    trainer.update()
    if step % 10 == 9:
        net.W2.clip_inplace(-0.5, 0.5)
        net.W1.scale(0.9)
        target.update_from(net)
        dy.renew_cg()
        report(target(obs[:, 0]).vec_value())
report([float(p.as_array().sum()) for p in m1.parameters_list()])
finish()
