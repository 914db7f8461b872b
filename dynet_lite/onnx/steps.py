"""A step of a recurrent builder as a network of its own: for programs that keep stacks of states and decide what comes next."""

from __future__ import annotations

from typing import Any

from dynet_lite.builders import VanillaLSTMBuilder

from .symbolic import Input


def step(builder: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """What `export` writes for one step: the function, its inputs and the names of its outputs.

    Inputs: `x` {input_dim} and the state of each layer, h0, h1, ... {hidden_dim}, of an LSTM c0, c1, ... before them; zeros at
    the beginning. Outputs: the state after it, c0_next, ..., h0_next, ... The output of the step is the last one.
    """
    kinds = "ch" if isinstance(builder, VanillaLSTMBuilder) else "h"
    names = [f"{kind}{layer}" for kind in kinds for layer in range(builder.layers)]

    def network(x: Any, **before: Any) -> Any:
        return builder.initial_state([before[name] for name in names]).add_input(x).s()

    inputs = {"x": Input((builder.input_dim,)), **{name: Input((builder.hidden_dim,)) for name in names}}
    return network, inputs, [f"{name}_next" for name in names]
