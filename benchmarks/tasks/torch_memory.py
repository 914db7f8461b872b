"""A piece of memory that steps write to and later steps read from, with gradients that cost what is touched.

Slices written in place and gathered with index_select would do, but then the backward pass copies or zeroes the whole
memory at every step: with a hundred steps that is most of the time. Here gradients are added up in a second
piece of memory of the same shape. A token, passed from each write to the reads after it, tells the backward pass the order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tasks import torch_common


class Rows:
    """Values and gradients, {rows, size} each."""

    def __init__(self, rows: int, size: int) -> None:
        self.values, self.gradients = torch_common.zeros(rows, size), torch_common.zeros(rows, size)


class Memory:
    """{rows, size}. A row must be written before it is read, and once only."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows = Rows(rows, size)
        self.token = torch_common.zeros().requires_grad_()

    def write(self, start: int, x: Tensor) -> None:
        self.token = Write.apply(self.rows, start, x, self.token)

    def read(self, rows: Tensor) -> Tensor:
        return Read.apply(self.rows, rows, self.token)  # type: ignore[no-any-return]


class Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, memory: Rows, start: int, x: Tensor, token: Tensor) -> Tensor:
        ctx.memory, ctx.place = memory, slice(start, start + len(x))
        memory.values[ctx.place] = x
        return torch_common.zeros()

    @staticmethod
    def backward(ctx: Any, token: Tensor) -> Any:
        return None, None, ctx.memory.gradients[ctx.place], token


class Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, memory: Rows, rows: Tensor, token: Tensor) -> Tensor:
        ctx.memory, ctx.rows = memory, rows
        return memory.values.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        ctx.memory.gradients.index_add_(0, ctx.rows, gradient)
        return None, None, torch_common.zeros()
