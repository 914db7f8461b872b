"""The language model in PyTorch is batched by hand anyway."""

from tasks.torch_rnnlm import Net

__all__ = ["Net"]
