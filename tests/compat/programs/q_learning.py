"""Deep Q learning: a double, duelling network, targets from a second network that is copied now and then, weighted replay."""

import dynet as dy
import numpy as np
from harness import finish, report, start

STATE, HIDDEN, ACTIONS, BATCH = 4, 9, 3, 6


class Network:
    def __init__(self, pc):
        self.pc = pc
        self.W = [pc.add_parameters((HIDDEN, STATE)), pc.add_parameters((HIDDEN, HIDDEN))]
        self.b = [pc.add_parameters(HIDDEN), pc.add_parameters(HIDDEN)]
        self.gain, self.shift = pc.add_parameters(HIDDEN), pc.add_parameters(HIDDEN)
        self.A, self.V = pc.add_parameters((ACTIONS, HIDDEN)), pc.add_parameters((1, HIDDEN))

    def __call__(self, states, batched=False):
        x = states if isinstance(states, dy.Expression) else dy.inputTensor(states, batched=batched)
        for W, b in zip(self.W, self.b):
            x = dy.rectify(dy.layer_norm(dy.affine_transform([b, W, x]), self.gain, self.shift))
        return self.A * x, self.V * x

    def take(self, other, tau=1.0):
        for mine, theirs in zip(self.pc.parameters_list(), other.pc.parameters_list()):
            mine.set_value((1 - tau) * mine.as_array() + tau * theirs.as_array())


both = dy.ParameterCollection()
learner, target = Network(both.add_subcollection("learner")), Network(both.add_subcollection("target"))
start(both)
target.take(learner)
trainer = dy.AdamTrainer(learner.pc, 0.01)
rng = np.random.RandomState(7)
memory, state = [], rng.uniform(-1, 1, STATE)


def act(state):
    dy.renew_cg()
    advantage, value = learner(state)
    return int(np.argmax(advantage.npvalue() + value.npvalue()))


for step in range(60):
    action = act(state) if rng.uniform() > 0.3 else int(rng.randint(ACTIONS))
    after = np.tanh(0.8 * state + 0.2 * (action - 1) + rng.uniform(-0.1, 0.1, STATE))
    memory.append((state, action, after[0] - abs(after[1]), after, float(step % 15 == 14)))
    state = after
    if step < 2 * BATCH or step % 3:
        continue
    picked = [memory[i] for i in rng.choice(len(memory), BATCH)]
    states, actions, rewards, nexts, done = [np.transpose(c) for c in zip(*picked)]
    dy.renew_cg()
    best = np.argmax(learner(nexts, batched=True)[0].npvalue(), axis=0)
    advantage, value = target(nexts, batched=True)
    ahead = (advantage.npvalue() + value.npvalue())[best, np.arange(BATCH)]
    dy.renew_cg()
    advantage, value = learner(states, batched=True)
    wanted = dy.inputTensor(rewards + 0.9 * ahead * (1 - done), batched=True)
    off = dy.pick_batch(advantage, actions) + value - wanted
    weights = np.abs(off.npvalue()).ravel() + 0.1
    loss = dy.sum_batches(dy.cmult(dy.pow(off, dy.constant(1, 2)), dy.inputTensor(weights, batched=True)))
    report(loss.value())
    loss.backward()
    trainer.update()
    target.take(learner, 1.0 if step % 9 == 0 else 0.1)
report([p.as_array().sum() for p in target.pc.parameters_list()])
finish()
