"""A step of a recurrent builder as a network of its own: for programs that keep stacks of states and decide what comes next."""

from __future__ import annotations

from typing import Any

from .symbolic import Input


def step(builder: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """What `export` needs for one step of a recurrent builder: the function, its inputs, and the names of its outputs.

    The inputs are `x` {input_dim} and the state of each layer, h0, h1, ... {hidden_dim}, zeros at first. An LSTM has
    c0, c1, ... before them. The outputs are the state after the step, c0_next, ..., h0_next, ... The last one is the
    output of the step.
    """
    if not hasattr(builder, "layers"):
        raise TypeError(f"[onnx] step: a recurrent builder of one direction is needed; got {type(builder).__name__}")
    kinds = "ch" if getattr(builder, "has_cell", False) else "h"
    names = [f"{kind}{layer}" for kind in kinds for layer in range(builder.layers)]

    def network(x: Any, **before: Any) -> Any:
        return builder.initial_state([before[name] for name in names]).add_input(x).s()

    inputs = {"x": Input((builder.input_dim,)), **{name: Input((builder.hidden_dim,)) for name in names}}
    return network, inputs, [f"{name}_next" for name in names]
