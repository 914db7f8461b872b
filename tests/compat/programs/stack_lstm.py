"""Stack-LSTM parser: states pushed and popped by keeping RNNState objects, prev(), composition, log_softmax with restrict."""

import dynet as dy
import numpy as np
from harness import finish, report, start

D, H, SHIFT, LEFT, RIGHT = 6, 8, 0, 1, 2
m = dy.ParameterCollection()
E = m.add_lookup_parameters((14, D))
W_comp, b_comp = m.add_parameters((D, 2 * D)), m.add_parameters(D)
W_s2h, b_s2h = m.add_parameters((H, 2 * H)), m.add_parameters(H)
W_act, b_act = m.add_parameters((3, H)), m.add_parameters(3)
buf_lstm, stack_lstm = dy.LSTMBuilder(1, D, H, m), dy.LSTMBuilder(2, D, H, m)
empty = m.add_parameters(H)
start(m)
trainer = dy.RMSPropTrainer(m, 0.003)


def parse(tokens, actions=None):
    dy.renew_cg()
    W_c, b_c = dy.parameter(W_comp), dy.parameter(b_comp)
    W_s, b_s, W_a, b_a = (dy.parameter(p) for p in (W_s2h, b_s2h, W_act, b_act))
    top, stack, losses, taken = stack_lstm.initial_state(), [], [], []
    state, buffer = buf_lstm.initial_state(), []
    nothing = dy.parameter(empty)
    for t in reversed(tokens):
        state = state.add_input(E[t])
        buffer.append((state.output(), E[t]))
    while not (len(stack) == 1 and not buffer):
        valid = ([SHIFT] if buffer else []) + ([LEFT, RIGHT] if len(stack) >= 2 else [])
        action = valid[0]
        log_probs = None
        if len(valid) > 1:
            s = stack[-1][0].output() if stack else nothing
            h = dy.tanh(W_s * dy.concatenate([buffer[-1][0] if buffer else nothing, s]) + b_s)
            log_probs = dy.log_softmax(W_a * h + b_a, valid)
            if actions is None:
                action = int(np.argmax(log_probs.npvalue()))
        if actions is not None:
            action = actions[len(taken) % len(actions)]
            if action not in valid:
                action = valid[0]
            if log_probs is not None:
                losses.append(-dy.pick(log_probs, action))
        taken.append(action)
        if action == SHIFT:
            _, x = buffer.pop()
            top = (stack[-1][0] if stack else top).add_input(x)
            stack.append((top, x))
        else:
            right, left = stack.pop(), stack.pop()
            head, child = (right, left) if action == LEFT else (left, right)
            x = dy.rectify(W_c * dy.concatenate([head[1], child[1]]) + b_c)
            below = stack[-1][0] if stack else left[0].prev()
            top = below.add_input(x)
            stack.append((top, x))
        if not stack:
            top = stack_lstm.initial_state()
    return (-dy.esum([-e for e in losses]) if losses else None), taken


sentences = [[(i * 4 + k * k) % 14 for k in range(3 + i % 4)] for i in range(8)]
for epoch in range(3):
    for i, tokens in enumerate(sentences):
        loss, _ = parse(tokens, [SHIFT, SHIFT, LEFT if i % 2 else RIGHT, SHIFT, RIGHT])
        if loss is not None:
            report(loss.scalar_value())
            loss.backward()
            trainer.update()
for tokens in sentences[:3]:
    report([float(a) for a in parse(tokens)[1]])
finish()
