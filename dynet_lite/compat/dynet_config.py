"""DyNet's module of settings: ``dynet_config.set(random_seed=1, autobatch=1)``, before or after anything else.

Only what a call names is set; flags and variables keep their say in the rest. See dynet_lite/config.py for the order.
"""

from __future__ import annotations

from typing import Any

from dynet_lite import config

_set: dict[str, Any] = {}
_defaults = {"mem": "512", "seed": 0, "autobatch": 0, "profiling": 0, "weight_decay": 0, "shared_params": 0,
             "requested_gpus": 0, "gpu_mask": []}  # fmt: skip
_gpu: bool | None = None


def set(
    mem: Any = None,
    random_seed: int | None = None,
    autobatch: Any = None,
    profiling: Any = None,
    weight_decay: float | None = None,
    shared_parameters: Any = None,
    requested_gpus: int | None = None,
    gpu_mask: Any = None,
) -> None:
    """Change the settings that are named. requested_gpus asks for a GPU; shared_parameters and gpu_mask do nothing."""
    named = {"mem": mem, "seed": random_seed, "autobatch": autobatch, "profiling": profiling,
             "weight_decay": weight_decay, "shared_params": shared_parameters, "requested_gpus": requested_gpus,
             "gpu_mask": gpu_mask}  # fmt: skip
    named = {name: value for name, value in named.items() if value is not None}
    config._put("dynet_config", config.from_dynet_config(named))
    _set.update(named)


def set_gpu(flag: bool = True) -> None:
    """Compute on a GPU from now on, or on the CPU again. Where no GPU can be used, a warning says why."""
    global _gpu
    _gpu = flag
    _set["requested_gpus"] = int(flag)
    config._put("dynet_config", config.gpu_if_any("cuda", "set_gpu()") if flag else {"device": "cpu"})


def gpu() -> bool | None:
    """What set_gpu() was told; None before."""
    return _gpu


def get() -> dict[str, Any] | None:
    """What was set here, in DyNet's names and with DyNet's defaults for the rest; None before the first set()."""
    return {**_defaults, **_set} if _set else None
