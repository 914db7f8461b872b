"""What the PyTorch programs share: the training step of each mode, LSTMs with DyNet's weights, padding.

A program's file, torch_<task>.py, holds `Net(sizes, weights)`, a module with

    one(instance)    the loss of one instance, straight from its lists
    padded(batch)    the loss of a mini-batch, batched by hand: padded, level by level, step by step
    COMPILED         names of its methods that torch.compile may work on; may be empty

Weights that end in "_table" are embeddings with sparse gradients, updated row by row as DyNet does.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100  # the label of what is padding
DEVICE = torch.device("cpu")  # where all of it happens


def use_device(name: str) -> None:
    """Before a program is made."""
    global DEVICE
    DEVICE = torch.device(name)


def on_gpu() -> bool:
    """Is DEVICE one that works while the program goes on?"""
    return DEVICE.type != "cpu"


def place(array: Any) -> Tensor:
    """An array as a tensor on DEVICE."""
    tensor = torch.from_numpy(array)
    return tensor.to(DEVICE, non_blocking=True) if on_gpu() else tensor


def place_all(arrays: Sequence[Any]) -> list[Tensor]:
    """Arrays of int64 with one axis, which go to a GPU in one copy."""
    if not on_gpu() or not arrays:
        return [torch.from_numpy(array) for array in arrays]
    return list(place(np.concatenate(arrays)).split([len(array) for array in arrays]))


def zeros(*sizes: int) -> Tensor:
    """Zeros on DEVICE."""
    return torch.zeros(sizes, device=DEVICE)


def ids(values: Any) -> Tensor:
    """A list of numbers, or one, on DEVICE."""
    return torch.tensor(values, device=DEVICE)


def training_step(
    program: ModuleType, mode: str, sizes: dict[str, int], weights: dict[str, Any], train: bool
) -> Callable[[Sequence[Any]], tuple[float, dict[str, float]]]:
    """The function that trains on a mini-batch; mode: one, padded, sorted (padded too) or compiled (padded too)."""
    net = program.Net(sizes, weights).to(DEVICE)
    if mode == "compiled":
        if not net.COMPILED:
            raise ModuleNotFoundError("this task's program has nothing for torch.compile")
        for name in net.COMPILED:
            setattr(net, name, torch.compile(getattr(net, name), dynamic=True))
    tables = [p for name, p in net.named_parameters() if "_table" in name]
    others = [p for name, p in net.named_parameters() if "_table" not in name and p.requires_grad]
    sparse, dense = torch.optim.SparseAdam(tables), torch.optim.Adam(others, fused=True)
    cpu, updates = time.process_time, itertools.count(1)

    def losses(batch: Sequence[Any]) -> Any:
        return map(net.one, batch) if mode == "one" else [net.padded(batch)]

    def step(batch: Sequence[Any]) -> tuple[float, dict[str, float]]:
        took, total = {"forward": 0.0, "backward": 0.0, "update": 0.0}, 0.0
        start = cpu()
        waiting = []
        for loss in losses(batch):
            if on_gpu():
                waiting.append(loss.detach())  # nobody waits for the GPU before the step is over
            else:
                total += float(loss)
            now = cpu()
            took["forward"] += now - start
            start = now
            loss.backward()
            now = cpu()
            took["backward"] += now - start
            start = now
        # DyNet, and SparseAdam, add epsilon before the correction of the second moment, Adam after it.
        dense.param_groups[0]["eps"] = 1e-8 / math.sqrt(1 - 0.999 ** next(updates))
        for optimizer in (sparse, dense):
            optimizer.step()
            optimizer.zero_grad()
        if waiting:
            total = float(torch.stack(waiting).sum())
        took["update"] = cpu() - start
        return total, took

    def evaluate(batch: Sequence[Any]) -> tuple[float, dict[str, float]]:
        with torch.inference_mode():
            start = cpu()
            total = float(torch.stack(list(losses(batch))).sum())
            return total, {"forward": cpu() - start}

    return step if train else evaluate


class Base(nn.Module):
    """Makes modules from named arrays."""

    COMPILED: tuple[str, ...] = ()

    def __init__(self, sizes: dict[str, int], weights: dict[str, Any]) -> None:
        super().__init__()
        self.sizes, self.arrays = sizes, weights
        self.make()
        del self.arrays

    def make(self) -> None:
        """Adds the modules."""
        raise NotImplementedError

    def weight(self, *names: str) -> nn.Parameter:
        """A weight; several ones below each other."""
        return nn.Parameter(torch.from_numpy(np.concatenate([self.arrays[name] for name in names])))

    def table(self, name: str) -> nn.Embedding:
        return nn.Embedding.from_pretrained(torch.from_numpy(self.arrays[name]).clone(), freeze=False, sparse=True)

    def linear(self, weights: Sequence[str], biases: Sequence[str]) -> nn.Linear:
        """One layer of several weights below each other; no biases: none."""
        weight = self.weight(*weights)
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bool(biases))
        layer.weight = weight
        if biases:
            layer.bias = self.weight(*biases)
        return layer

    def beside(self, weights: Sequence[str], bias: str) -> nn.Linear:
        """One layer of several weights beside each other."""
        weight = nn.Parameter(torch.from_numpy(np.concatenate([self.arrays[name] for name in weights], axis=1)))
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight, layer.bias = weight, self.weight(bias)
        return layer

    def lstm_arrays(self, name: str) -> tuple[Tensor, Tensor, Tensor]:
        """Wx, Wh, b with PyTorch's order of blocks, i f g o, and the forget gate's bias raised by 1."""

        def reordered(array: Any) -> Tensor:
            i, f, o, g = np.split(array, 4)
            return torch.from_numpy(np.concatenate([i, f, g, o]))

        wx, wh, b = (reordered(self.arrays[f"{name}.{part}"]) for part in ("Wx", "Wh", "b"))
        hidden = wh.shape[1]
        b[hidden : 2 * hidden] += 1
        return wx, wh, b

    def lstm(self, name: str) -> nn.LSTM:
        return fill(nn.LSTM, self.lstm_arrays(name), "_l0")

    def cell(self, name: str) -> nn.LSTMCell:
        return fill(nn.LSTMCell, self.lstm_arrays(name), "")


def fill(kind: Any, arrays: tuple[Tensor, Tensor, Tensor], suffix: str) -> Any:
    """An LSTM with these weights; the second bias is 0 and stays so."""
    wx, wh, b = arrays
    lstm = kind(wx.shape[1], wh.shape[1])
    for name, array in (("weight_ih", wx), ("weight_hh", wh), ("bias_ih", b), ("bias_hh", torch.zeros_like(b))):
        setattr(lstm, name + suffix, nn.Parameter(array, requires_grad=name != "bias_hh"))
    return lstm


def pad(rows: Sequence[Sequence[int]], filler: int = 0) -> Tensor:
    """Lists of ids as a tensor {longest, lists}."""
    longest = max(map(len, rows))
    array = np.full((len(rows), longest), filler, np.int64)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return place(array.T.copy())


def reversal(lengths: Sequence[int]) -> Tensor:
    """Positions that turn round each sequence of a padded tensor {longest, sequences}, padding left behind."""
    ns, t = np.asarray(lengths), np.arange(max(lengths))[:, None]
    return place(np.where(t < ns, ns - 1 - t, t))


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """x {longest, sequences, size} with each sequence in the order of its positions."""
    steps, count, size = x.shape
    rows = (positions * count + torch.arange(count, device=DEVICE)).reshape(-1)
    return x.reshape(steps * count, size).index_select(0, rows).view(steps, count, size)


def both_ways(forward: nn.LSTM, backward: nn.LSTM, x: Tensor, lengths: Sequence[int]) -> Tensor:
    """The outputs of two LSTMs, one from each end, side by side."""
    if len(lengths) == 1:
        return torch.cat([forward(x)[0], backward(x.flip(0))[0].flip(0)], -1)
    positions = reversal(lengths)
    back = turned(backward(turned(x, positions))[0], positions)
    return torch.cat([forward(x)[0], back], -1)


def pick_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum of -log softmax at the labels; scores {..., classes}."""
    return F.cross_entropy(
        scores.reshape(-1, scores.shape[-1]), labels.reshape(-1), reduction="sum", ignore_index=IGNORED
    )
