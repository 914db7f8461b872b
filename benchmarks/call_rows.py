"""The rows of calls.py: calls that DyNet has, too, written in its API, and what they are given.

A row of GRAPH_CALLS gives an expression, or a list of them; STATE_CALLS make nodes, but no loss can be made of what they
give; OTHER_CALLS make no node, or more than one. A row may use the names of the engine and these: vectors x, y {n},
s, u_s {20}; xb {n} X 32; m, o {n,k}; q {k,k}; t {k,k,4}, u {4}, v {k}; c {1}; z two vectors; f {h,h,2}; weights W, w,
b, ...; a table E.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np

BATCH = 32
STATES = {"state": "lstm", "gru_state": "gru", "rnn_state": "rnn"}
ROWS = 50  # of the table

GRAPH_CALLS = """
x + y; x - y; x * c; w * x; m * v; x + 1.5; x - 1.5; x * 2; x / 2; x ** 2; -x; cmult(x, y); cdiv(x, y); pow(x, c)
bmin(x, y); bmax(x, y); sin(x); cos(x); tan(x); asin(x); acos(x); atan(x); sinh(x); cosh(x); tanh(x); asinh(x)
acosh(x + 1); atanh(x); exp(x); square(x); sqrt(x); abs(x); erf(x); cube(x); log(x); log_sigmoid(x); lgamma(x)
logistic(x); rectify(x); selu(x); elu(x); silu(x); softsign(x); round(x, 'zero_gradient'); ceil(x, 'zero_gradient')
floor(x, 'zero_gradient'); argmax(x, 'zero_gradient'); nobackprop(x); flip_gradient(x); scale_gradient(x, 0.5)
colwise_add(m, x); affine_transform([b, w, x]); affine_transform([b, w, x, w, y]); dot_product(x, y)
trace_of_product(m, o); inverse(q); logdet(q); contract3d_1d(t, u); contract3d_1d_bias(t, u, q)
contract3d_1d_1d(t, u, v); contract3d_1d_1d_bias(t, u, v, v); circ_conv(x, y); circ_corr(x, y); squared_distance(x, y)
l1_distance(x, y); huber_distance(x, y); squared_norm(x); l2_norm(x); weight_norm(x, c); hinge(x, 3)
hinge_batch(xb, ids); hinge_dim(m, picks, 0); pickneglogsoftmax(x, 3); pickneglogsoftmax_batch(xb, ids)
binary_log_loss(x, y); pairwise_rank_loss(c, c); poisson_loss(c, 3); softmax(x); softmax(m, 1); log_softmax(x)
log_softmax(x, [1, 2]); sparsemax(s); constrained_softmax(s, u_s); logsumexp(z); logsumexp_dim(m); layer_norm(x, y, y)
esum(z); average(z); emax(z); concatenate(z); concatenate([m, o], 1); concatenate_cols(z); concatenate_to_batch(z)
sum_elems(x); mean_elems(x); std_elems(x); moment_elems(x, 2); sum_dim(m, [0]); sum_dim(m, [0, 1])
mean_dim(m, [0], False); std_dim(m, [0], False); moment_dim(m, [0], 2, False); sum_batches(x); mean_batches(x)
std_batches(xb); moment_batches(x, 2); max_dim(m); min_dim(m); cumsum(x); kmax_pooling(m, 2); reshape(m, (k, n))
transpose(m); transpose(t, [2, 1, 0]); pick(x, 3); pick(m, 1, 1); pick_batch(xb, ids); pick_range(x, 1, 4)
pickrange(x, 1, 4); pick_batch_elem(x, 0); pick_batch_elems(x, [0, 0]); select_rows(m, [1, 2, 3])
select_cols(m, [1, 2, 3]); strided_select(m, [2, 1], [0, 0], [n, k]); strided_select(x, [2], [0], [n])
strided_select(m, [1, 1], [1, 1], [3, 3]); x[3]; x[-1]; x[1:4]; m[1]; m[1:3]; m[1][2]; x[0:10:2]
conv2d(f, kernel, [1, 1]); conv2d_bias(f, kernel, kernel_bias, [1, 1]); maxpooling2d(f, [2, 2], [2, 2])
filter1d_narrow(m, g); fold_rows(m, 2); fold_rows(x, 2); kmh_ngram(m, 3); noise(x, 0.1); dropout(x, 0.5)
dropout_batch(x, 0.5); dropout_dim(m, 0, 0.5); block_dropout(x, 0.5); vanilla_lstm_gates(x, y, wx, wh, wb)
vanilla_lstm_gates_concat(z, y, wx2, wh, wb); vanilla_lstm_c(y, gates); vanilla_lstm_h(y, gates)
vanilla_lstm_gates_dropout(x, y, wx, wh, wb, y, y); E[3]; E.batch(ids); lookup(E, 3); lookup(E, 3, False)
lookup_batch(E, ids); lookup_batch(E, ids, False); E.expr(); W.expr(); W.expr(True); parameter(W); const_parameter(W)
scalarInput(1.5); vecInput(n); inputVector(numbers); inputVector(array); inputTensor(array); inputTensor(square_array)
inputTensor(square_array, True); inputTensor(numbers); inputTensorTranspose(array, (n // 2, 2)); one_hot(n, 3)
one_hot(n, [1, 2, 3]); sparse_inputTensor([[0, 1], [1, 1]], [1.0, 2.0], (n, k)); zeros((n,)); zeroes((n,)); ones((n,))
ones(n); constant((n,), 2.0); random_normal((n,)); random_normal(n); random_bernoulli((n,), 0.5)
random_uniform((n,), 0.0, 1.0); random_gumbel((n,)); lstm.initial_state().add_input(x).output()
gru.initial_state().add_input(x).output(); rnn.initial_state().add_input(x).output(); state.add_input(x).output()
lstm.initial_state().transduce(z); birnn.transduce(z); lstm.initial_state([y, y]).output(); soft.neg_log_softmax(x, 3)
soft.neg_log_softmax_batch(xb, ids); soft.full_log_distribution(x); soft.full_logits(x)
"""

# The same, of which no loss can be made.
STATE_CALLS = """
state.add_input(x); gru_state.add_input(x); rnn_state.add_input(x); lstm_dropout.initial_state().add_input(x)
gru_dropout.initial_state().add_input(x); lstm.initial_state().add_inputs(z); birnn.add_inputs(z)
lstm.initial_state([y, y]); lstm.initial_state_from_raw_vectors([numbers, numbers]); state.set_h([x])
state.set_s([x, y]); lstm.initial_state(update=False); lstm.initial_state(); gru.initial_state(); rnn.initial_state()
coupled.initial_state().add_input(x); compact.initial_state().add_input(x)
"""

OTHER_CALLS = """
x.dim(); m.dim(); c.value(); c.scalar_value(); c.npvalue(); x.value(); x.vec_value(); x.npvalue(); m.value()
m.npvalue(); m.vec_value(); x.value(recalculate=True); x.forward(); x.tensor_value(); x.tensor_value().as_numpy()
x.tensor_value().argmax(); m.tensor_value().topk(); W.gradient(); W.dim(); W.shape(); W.name(); W.as_array()
W.npvalue(); W.value(); W.grad_as_array(); W.is_updated(); W.set_updated(True); W.set_value(weights); W.zero()
W.scale(1.0); W.scale_gradient(1.0); W.clip_inplace(-1.0, 1.0); b.as_array(); b.set_value(array); E.shape(); E.name()
E.as_array(); E.row_as_array(3); E.rows_as_array(ids); E.grad_as_array(); E.row_grad_as_array(3)
E.rows_grad_as_array(ids); E.is_updated(); E.set_updated(True); E.init_row(3, numbers); E.init_from_array(table)
E.scale(1.0); E.scale_gradient(1.0); len(E); model.name(); model.parameters_list(); model.lookup_parameters_list()
model.parameter_count(); model.get_weight_decay(); model.set_weight_decay(0.0); model.add_subcollection()
model.add_parameters((k, k)); model.add_parameters(k, init=ConstInitializer(0.0))
model.add_parameters((k, k), init=NormalInitializer()); model.add_lookup_parameters((ROWS, k))
model.parameters_from_numpy(array); model.lookup_parameters_from_numpy(table); state.output(); state.h(); state.s()
state.prev(); state.b(); lstm.get_parameters(); lstm.set_dropouts(0.0, 0.0); lstm.disable_dropout()
lstm.param_collection(); lstm.spec; lstm.set_dropout_masks(); VanillaLSTMBuilder(1, k, k, model)
GRUBuilder(1, k, k, model); SimpleRNNBuilder(1, k, k, model); SimpleSGDTrainer(model); AdamTrainer(few)
trainer.update(); adam.update(); momentum.update(); trainer.learning_rate; trainer.restart()
trainer.set_learning_rate(0.01); trainer.set_clip_threshold(5.0); trainer.get_clip_threshold(); trainer.status
soft.sample(x); renew_cg(); cg(); cg_version(); cg_checkpoint(); values([x, y]); npvalues([x, y]); forward([x, y])
tell(renew_cg(), (l := squared_norm(b)).value(), l.backward(), trainer.update())
tell(renew_cg(), (l := squared_norm(b)).value(), l.backward(), adam.update())
tell(renew_cg(), (l := squared_norm(E[3])).value(), l.backward(), adam.update())
tell(renew_cg(), (l := squared_norm(w * inputVector(numbers))).value(), l.backward(), adam.update())
tell(renew_cg(), (l := squared_norm(inputVector(numbers))).value())
"""


def rows(text: str) -> list[str]:
    """The calls of a list, without line breaks."""
    return [row.strip() for line in text.splitlines() if line for row in line.split("; ")]


class Given:
    """Weights and numbers of one size, kept from graph to graph."""

    def __init__(self, dy: ModuleType, n: int, batch: int) -> None:
        self.dy, self.n, self.batch = dy, n, batch
        self.k = k = min(n, 64)
        random = self.random = np.random.RandomState(1)
        self.few, self.model = dy.ParameterCollection(), dy.ParameterCollection()
        self.weights: dict[str, Any] = {}
        self.shared: dict[str, Any] = {"n": n, "k": k, "ROWS": ROWS, "few": self.few, "model": self.model}
        self.shared["tell"] = lambda *results: None
        shapes = {
            "W": (k, k),
            "w": (k, n),
            "b": (n,),
            "wx": (4 * n, n),
            "wh": (4 * n, n),
            "wx2": (4 * n, 2 * n),
            "wb": (4 * n,),
        }
        shapes |= {"kernel": (3, 3, 2, 2), "kernel_bias": (2,), "g": (n, 3, 2)}
        for name, shape in shapes.items():
            self.shared[name] = self.few.parameters_from_numpy(random.uniform(-0.1, 0.1, shape).astype(np.float32))
        self.shared["b_k"] = self.few.add_parameters(k)
        self.shared["table"] = random.uniform(-1, 1, (ROWS, n)).astype(np.float32)
        self.shared["E"] = self.few.lookup_parameters_from_numpy(self.shared["table"])
        self.shared["weights"] = random.uniform(-1, 1, (k, k))
        self.shared["array"] = random.uniform(0.2, 0.8, n)
        self.shared["square_array"] = random.uniform(0.2, 0.8, (k, BATCH))
        self.shared["numbers"] = self.shared["array"].tolist()
        self.shared["ids"] = [i % n for i in range(BATCH)]
        self.shared["picks"] = [i % n for i in range(k)]
        own = dy.ParameterCollection()
        for name, kind in (("lstm", "VanillaLSTM"), ("gru", "GRU"), ("rnn", "SimpleRNN")):
            for ending in ("", "_dropout"):
                self.shared[name + ending] = getattr(dy, kind + "Builder")(1, n, n, own)
                if ending:
                    self.shared[name + ending].set_dropout(0.2)
        self.shared["coupled"] = dy.CoupledLSTMBuilder(1, n, n, own)
        self.shared["compact"] = dy.CompactVanillaLSTMBuilder(1, n, n, own)
        self.shared["birnn"] = dy.BiRNNBuilder(1, n, n, own, dy.VanillaLSTMBuilder)
        self.shared["soft"] = dy.StandardSoftmaxBuilder(n, 20, own)
        self.shared["trainer"] = dy.SimpleSGDTrainer(self.few, 1e-6)
        self.shared["adam"] = dy.AdamTrainer(self.few, 1e-6)
        self.shared["momentum"] = dy.MomentumSGDTrainer(self.few, 1e-6)

    def arguments(self, row: str, constant: bool = False) -> dict[str, Any]:
        """What a row names, in a new graph: expressions, evaluated, which have gradients unless they are constants."""
        n, k = self.n, self.k
        h = 8 if n < 100 else 32
        shapes = {
            "x": (n,),
            "y": (n,),
            "m": (n, k),
            "o": (n, k),
            "q": (k, k),
            "t": (k, k, 4),
            "u": (4,),
            "v": (k,),
            "c": (1,),
        }
        shapes |= {"s": (20,), "u_s": (20,), "f": (h, h, 2), "gates": (4 * n,), "xb": (n,)}
        self.dy.renew_cg()
        made = dict(self.shared)
        named = set(re.findall(r"\w+", row))
        if "z" in named or not named.isdisjoint(STATES):
            named |= {"x", "y"}
        for name in sorted(named.intersection(shapes)):
            batch = 1 if name in ("u", "q") else BATCH if name == "xb" else self.batch
            made[name] = self.made(name, shapes[name], batch, constant)
        if "z" in named:
            made["z"] = [made["x"], made["y"]]
        for name in named.intersection(STATES):
            made[name] = made[STATES[name]].initial_state().add_input(made["x"])
        if "grad" in row:
            loss = self.dy.sum_elems(made["W"]) + self.dy.sum_elems(made["E"][3])
            loss.value()
            loss.backward()
        return made

    def made(self, name: str, shape: tuple[int, ...], batch: int, constant: bool) -> Any:
        if name not in self.weights:
            first = self.random.uniform(0.2, 0.8, (*shape, batch) if batch > 1 else shape)
            if shape[:1] == shape[1:2]:
                first += 3 * np.eye(shape[0]).reshape(shape[0], shape[0], *[1] * (first.ndim - 2))
            self.weights[name] = first, self.few.parameters_from_numpy(np.zeros(shape) if batch > 1 else first)
        numbers, weight = self.weights[name]
        x = self.dy.inputTensor(numbers, batch > 1)
        if not constant:
            x = x + weight
        x.forward()
        return x
