"""The ops of DyNet as small programs that run on DyNet and on the stand-in; test_ops.py compares what they save.

As a script: python op_cases.py RESULTS.npz. A case is a call and its arguments: letters are sizes drawn from the case's
seed (two to five), "*" gives a batch of two to four, what follows ":" is how the numbers are drawn. The gradients are
those of a sum with random weights.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SEEDS = 3


class Case(NamedTuple):
    call: Callable[..., Any]
    args: tuple[str, ...]


CASES: dict[str, Case] = {}
DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "": lambda r, s: r.standard_normal(s),
    "pos": lambda r, s: r.uniform(0.3, 2, s),
    "unit": lambda r, s: r.uniform(-0.85, 0.85, s),
    "big": lambda r, s: r.uniform(1.2, 3, s),
    "prob": lambda r, s: r.uniform(0.1, 0.9, s),
    "far": lambda r, s: (r.permutation(int(np.prod(s))) * 0.3 + 0.1 - 0.15 * int(np.prod(s))).reshape(s),
    "count": lambda r, s: r.integers(0, 5, s),
}


def case(name: str, call: Callable[..., Any], *args: str) -> None:
    while name in CASES:
        name += "'"
    CASES[name] = Case(call, args)


# A call is given dy, an object with the sizes that were drawn, and the arguments.
for _names, _draw in {
    "sin cos tanh asinh sinh cosh atan exp square erf cube log_sigmoid logistic selu elu silu": "",
    "rectify abs": "far",
    "tan asin acos atanh": "unit",
    "sqrt log lgamma": "pos",
    "acosh": "big",
}.items():
    for _name in _names.split():
        case(_name, lambda dy, s, x, f=_name: getattr(dy, f)(x), "nm*:" + _draw)
case("softsign", lambda dy, s, x: dy.softsign(x), "n*")
case("elu alpha", lambda dy, s, x: dy.elu(x, 0.7), "nm*")
case("silu beta", lambda dy, s, x: dy.silu(x, 1.5), "nm*")
case("scale_gradient", lambda dy, s, x: dy.scale_gradient(x, 0.3), "nm*")
case("flip_gradient", lambda dy, s, x: dy.flip_gradient(x), "nm*")
case("nobackprop", lambda dy, s, x: dy.nobackprop(x) + x * 2, "nm*")

for _name, _draw in (("cmult", ""), ("cdiv", ":pos")):
    for _a, _b in (("nm", "nm"), ("nm*", "nm"), ("nm*", "nm*"), ("nm*", "n*"), ("nm", "n"), ("nm*", "1")):
        case(_name, lambda dy, s, x, y, f=_name: getattr(dy, f)(x, y), _a, _b + _draw)
for _a, _b in (("nm", "nm*"), ("nm*", "nm*"), ("nm", "n"), ("n", "nm*"), ("1", "nm*"), ("nmk", "nm")):
    case("add", lambda dy, s, x, y: x + y, _a, _b)
    case("subtract", lambda dy, s, x, y: x - y, _a, _b)
case("cmult both ways", lambda dy, s, x, y: dy.cmult(x, y), "1m", "n1")
case("negate", lambda dy, s, x: -x, "nm*")
case("constants", lambda dy, s, x: ((x + 1.5) * 2 - 3) / 4, "nm*")
case("power of a number", lambda dy, s, x: x**3, "nm*:pos")
case("pow", lambda dy, s, x, y: dy.pow(x, y), "nm*:pos", "1")
case("bmin", lambda dy, s, x, y: dy.bmin(x, y), "nm*", "nm*")
case("bmax", lambda dy, s, x, y: dy.bmax(x, y), "nm*", "nm*")
case("colwise_add", lambda dy, s, x, y: dy.colwise_add(x, y), "nm*", "n")

for _a, _b in (("nm", "m"), ("nm", "m*"), ("nm*", "m*"), ("nm", "mk"), ("nm", "mk*"), ("nm*", "mk"), ("n", "1m")):
    case("matmul", lambda dy, s, x, y: x * y, _a, _b)
case("affine", lambda dy, s, b, w, x: dy.affine_transform([b, w, x]), "n", "nm", "m*")
case("affine", lambda dy, s, b, w, x, u, y: dy.affine_transform([b, w, x, u, y]), "n", "nm", "m*", "nk", "k")
case("affine", lambda dy, s, b, w, x: dy.affine_transform([b, w, x]), "n", "nm", "mk*")
case("dot_product", lambda dy, s, x, y: dy.dot_product(x, y), "n*", "n*")
case("dot_product", lambda dy, s, x, y: dy.dot_product(x, y), "nm", "nm*")
case("trace_of_product", lambda dy, s, x, y: dy.trace_of_product(x, y), "nm", "nm")
case("inverse", lambda dy, s, x: dy.inverse(x + dy.inputTensor(4 * np.eye(s.n))), "nn")
case("logdet", lambda dy, s, x: dy.logdet(x + dy.inputTensor(6 * np.eye(s.n))), "nn")
case("contract3d_1d_1d", lambda dy, s, x, y, z: dy.contract3d_1d_1d(x, y, z), "nmk", "k", "m")
case("contract3d_1d_1d_bias", lambda dy, s, x, y, z, b: dy.contract3d_1d_1d_bias(x, y, z, b), "nmk", "k", "m", "n")
case("contract3d_1d_bias", lambda dy, s, x, y, b: dy.contract3d_1d_bias(x, y, b), "nmk", "k", "nm")
case("circ_conv", lambda dy, s, x, y: dy.circ_conv(x, y), "n", "n")
case("circ_corr", lambda dy, s, x, y: dy.circ_corr(x, y), "n", "n")

case("squared_distance", lambda dy, s, x, y: dy.squared_distance(x, y), "nm*", "nm*")
case("l1_distance", lambda dy, s, x, y: dy.l1_distance(x, y), "nm", "nm")
case("huber_distance", lambda dy, s, x, y: dy.huber_distance(x, y), "n", "n")
case("huber_distance", lambda dy, s, x, y: dy.huber_distance(x, y, 0.5), "n", "n")
case("squared_norm", lambda dy, s, x: dy.squared_norm(x), "nm*")
case("l2_norm", lambda dy, s, x: dy.l2_norm(x), "nm*")
case("weight_norm", lambda dy, s, x, g: dy.weight_norm(x, g), "nm", "1")

case("pickneglogsoftmax", lambda dy, s, x: dy.pickneglogsoftmax(x, s.n - 1), "n")
case("pickneglogsoftmax", lambda dy, s, x: dy.pickneglogsoftmax_batch(x, s.ids(s.n)), "n*")
case("hinge", lambda dy, s, x: dy.hinge(x, 1), "n")
case("hinge", lambda dy, s, x: dy.hinge(x, 1, 0.3), "n")
case("hinge", lambda dy, s, x: dy.hinge_batch(x, s.ids(s.n), 1.5), "n*")
case("hinge_dim", lambda dy, s, x: dy.hinge_dim(x, [1] * s.m, 0), "nm")
case("hinge_dim", lambda dy, s, x: dy.hinge_dim(x, [0] * s.n, 1, 2.0), "nm")
case("binary_log_loss", lambda dy, s, x: dy.binary_log_loss(x, dy.inputVector(np.arange(s.n) / s.n)), "n:prob")
case("pairwise_rank_loss", lambda dy, s, x, y: dy.pairwise_rank_loss(x, y, 0.5), "1*", "1*")
case("poisson_loss", lambda dy, s, x: dy.poisson_loss(x, 3), "1")

case("softmax", lambda dy, s, x: dy.softmax(x), "n*")
case("softmax", lambda dy, s, x: dy.softmax(x), "nm*")
case("softmax", lambda dy, s, x: dy.softmax(x, 1), "nm*")
case("log_softmax", lambda dy, s, x: dy.log_softmax(x), "nm*")
case("log_softmax restricted", lambda dy, s, x: dy.log_softmax(x, [0, 1])[1], "n")
case("sparsemax", lambda dy, s, x: dy.sparsemax(x), "n")
case("constrained_softmax", lambda dy, s, x: dy.constrained_softmax(x, dy.inputVector([0.6] * s.n)), "n")
case("logsumexp", lambda dy, s, x, y, z: dy.logsumexp([x, y, z]), "nm*", "nm*", "nm*")
case("logsumexp_dim", lambda dy, s, x: dy.logsumexp_dim(x), "nm*")
case("logsumexp_dim", lambda dy, s, x: dy.logsumexp_dim(x, 1), "nm*")
case("layer_norm", lambda dy, s, x, g, b: dy.layer_norm(x, g, b), "n*", "n", "n")

case("esum", lambda dy, s, x, y, z: dy.esum([x, y, z]), "nm*", "nm", "nm*")
case("average", lambda dy, s, x, y, z: dy.average([x, y, z]), "nm*", "nm*", "nm*")
case("emax", lambda dy, s, x, y, z: dy.emax([x, y, z]), "nm*", "nm*", "nm*")
case("concatenate", lambda dy, s, x, y: dy.concatenate([x, y]), "nm*", "km*")
case("concatenate", lambda dy, s, x, y: dy.concatenate([x, y]), "n*", "k")
case("concatenate", lambda dy, s, x, y: dy.concatenate([x, y], 1), "nm*", "nk")
case("concatenate_cols", lambda dy, s, x, y: dy.concatenate_cols([x, y]), "n*", "n*")
case("concatenate_to_batch", lambda dy, s, x, y: dy.concatenate_to_batch([x, y]), "nm*", "nm")
for _name in "sum_elems mean_elems std_elems sum_batches mean_batches std_batches".split():
    case(_name, lambda dy, s, x, f=_name: getattr(dy, f)(x), "nm*")
case("moment_elems", lambda dy, s, x: dy.moment_elems(x, 3), "nm*")
case("moment_batches", lambda dy, s, x: dy.moment_batches(x, 2), "nm*")
for _name in ("sum_dim", "mean_dim", "std_dim"):
    for _d in ([0], [1], [0, 1]):
        for _b in (False, True):
            extra = {} if _name == "sum_dim" else {"n": 0}
            case(_name, lambda dy, s, x, f=_name, d=_d, b=_b, e=extra: getattr(dy, f)(x, d, b, **e), "nm*")
case("sum_dim", lambda dy, s, x: dy.sum_dim(x, [2]), "nmk*")
case("moment_dim", lambda dy, s, x: dy.moment_dim(x, [0], 2, False), "nm*")
case("mean_dim divisor", lambda dy, s, x: dy.mean_dim(x, [0], False, 7), "nm*")
case("max_dim", lambda dy, s, x: dy.max_dim(x), "nm*:far")
case("max_dim", lambda dy, s, x: dy.max_dim(x, 1), "nm*:far")
case("min_dim", lambda dy, s, x: dy.min_dim(x, 1), "nm*:far")
case("cumsum", lambda dy, s, x: dy.cumsum(x), "nm*")
case("cumsum", lambda dy, s, x: dy.cumsum(x, 1), "nm*")
case("kmax_pooling", lambda dy, s, x: dy.kmax_pooling(x, 2), "nm*:far")

case("reshape", lambda dy, s, x: dy.reshape(x, (s.m, s.n)), "nm*")
case("reshape", lambda dy, s, x: dy.reshape(x, (s.n, s.m * s.b)), "nm*")
case("reshape", lambda dy, s, x: dy.reshape(x, (s.n,), s.m), "nm")
case("transpose", lambda dy, s, x: dy.transpose(x), "nm*")
case("transpose", lambda dy, s, x: dy.transpose(x), "n*")
case("transpose", lambda dy, s, x: dy.transpose(x, [2, 0, 1]), "nmk*")
case("pick", lambda dy, s, x: dy.pick(x, 1), "n*")
case("pick", lambda dy, s, x: dy.pick(x, 1, 1), "nm*")
case("pick_batch", lambda dy, s, x: dy.pick_batch(x, s.ids(s.n)), "n*")
case("pick_batch", lambda dy, s, x: dy.pick_batch(x, s.ids(s.m), 1), "nm*")
case("pick_range", lambda dy, s, x: dy.pick_range(x, 1, s.n), "nm*")
case("pick_range", lambda dy, s, x: dy.pick_range(x, 0, s.m - 1, 1), "nm*")
case("pick_batch_elem", lambda dy, s, x: dy.pick_batch_elem(x, 1), "nm*")
case("pick_batch_elems", lambda dy, s, x: dy.pick_batch_elems(x, [1, 0]), "nm*")
case("select_rows", lambda dy, s, x: dy.select_rows(x, [1, 0, 1]), "nm")
case("select_cols", lambda dy, s, x: dy.select_cols(x, [1, 0]), "nm")
case("strided_select", lambda dy, s, x: dy.strided_select(x, [2, 1], [0, 1], [s.n, s.m]), "nm*")
case("index", lambda dy, s, x: x[1], "nm*")
case("index", lambda dy, s, x: x[-1], "n*")
case("index", lambda dy, s, x: x[0:2], "nm*")
case("index", lambda dy, s, x: x[0:2, 1:], "nm*")
case("index", lambda dy, s, x: x[::2], "nm*")

for _valid in (True, False):
    for _stride in ([1, 1], [2, 1]):
        case("conv2d", lambda dy, s, x, f, v=_valid, t=_stride: dy.conv2d(x, f, t, v), "662*", "2323")
        case("conv2d_bias", lambda dy, s, x, f, b, v=_valid, t=_stride: dy.conv2d_bias(x, f, b, t, v),
             "672*", "3324", "4")  # fmt: skip
        case("maxpooling2d", lambda dy, s, x, v=_valid, t=_stride: dy.maxpooling2d(x, [2, 3], t, v), "67n*:far")
case("filter1d_narrow", lambda dy, s, x, f: dy.filter1d_narrow(x, f), "n6", "n3")
case("filter1d_narrow", lambda dy, s, x, f: dy.filter1d_narrow(x, f), "n6", "n3k")
case("fold_rows", lambda dy, s, x: dy.fold_rows(x, 2), "6m")
case("kmh_ngram", lambda dy, s, x: dy.kmh_ngram(x, 2), "n6")

case("lstm gates", lambda dy, s, x, c, h, wx, wh, b: (lambda g: dy.vanilla_lstm_h(dy.vanilla_lstm_c(c, g), g))(
    dy.vanilla_lstm_gates(x, h, wx, wh, b)), "n*", "2*", "2*", "8n", "82", "8")  # fmt: skip


class Sizes:
    """Sizes by letter, drawn at first use; b is the batch size."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.b = int(rng.integers(2, 5))

    def __getattr__(self, letter: str) -> int:
        setattr(self, letter, int(self._rng.integers(2, 6)))
        return int(vars(self)[letter])

    def ids(self, limit: int) -> list[int]:
        return [(7 * k + 3) % limit for k in range(self.b)]


def arguments(name: str, seed: int) -> tuple[Sizes, list[tuple[Any, bool]]]:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    sizes, arrays = Sizes(rng), []
    for spec in CASES[name].args:
        shape, _, draw = spec.partition(":")
        dims = [int(c) if c.isdigit() else getattr(sizes, c) for c in shape.rstrip("*")]
        batched = shape.endswith("*")
        x = DRAWS[draw](rng, (*dims, sizes.b) if batched else tuple(dims))
        arrays.append((np.asarray(x, dtype=np.float32), batched))
    return sizes, arrays


def run(dy: Any, name: str, seed: int) -> dict[str, Any]:
    """Value and gradients of a case."""
    sizes, arrays = arguments(name, seed)
    dy.renew_cg()
    xs = [dy.inputTensor(a, batched=b) for a, b in arrays]
    y = CASES[name].call(dy, sizes, *xs)
    (dims, batch) = y.dim()
    w = np.random.default_rng(5).uniform(0.5, 1.5, (*dims, batch) if batch > 1 else dims)
    loss = dy.sum_batches(dy.sum_elems(dy.cmult(y, dy.inputTensor(w, batched=batch > 1))))
    value = y.npvalue()
    loss.backward(full=True)
    out = {f"{name}/{seed}/value": value}
    for k, x in enumerate(xs):
        out[f"{name}/{seed}/gradient{k}"] = x.gradient()
    return out


if __name__ == "__main__":
    import os

    import dynet

    results: dict[str, Any] = {}
    for label in CASES:
        for number in range(SEEDS):
            try:
                results.update(run(dynet, label, number))
            except Exception as error:
                results[f"{label}/{number}/error"] = np.array(f"{type(error).__name__}: {error}")
    np.savez(sys.argv[1], **{k.replace("/", "|"): v for k, v in results.items()})
    sys.stdout.flush()
    os._exit(0)
