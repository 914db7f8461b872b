"""Devices: the CPU, the GPUs that are there, and why a GPU cannot be used.

Nothing of a GPU is looked for before somebody asks: neither importing nor a program that stays on the CPU loads
a driver. Who may import: config.py and the package; users reach it as ``dy.devices`` and ``dy.configure(device=...)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynet_lite import _core
from dynet_lite.errors import DeviceError

__all__ = ["Device", "devices"]


class UnknownDevice(DeviceError, ValueError):
    """There is no device of this name; DyNet raises RuntimeError, and programs then take the CPU."""


@dataclass(frozen=True)
class Device:
    """One device: what ``dy.configure(device=...)`` calls it, and what is known of it."""

    name: str  # "cpu", "cuda:0", ...; "cuda" alone where no GPU was found
    model: str = ""
    memory: int = 0  # bytes; 0 where it is not known
    capability: tuple[int, int] | None = None  # compute capability of a GPU
    problem: str = ""  # why it cannot be used

    @property
    def usable(self) -> bool:
        """Whether it can be used, as far as is known."""
        return not self.problem

    def __str__(self) -> str:
        about = [self.model] if self.model else []
        if self.memory:
            about.append(f"{self.memory / 2**30:.1f} GB")
        if self.capability:
            about.append(f"compute capability {self.capability[0]}.{self.capability[1]}")
        text = f"{self.name}: {', '.join(about)}" if about else self.name
        return text if self.usable else f"{text}{';' if about else ''} cannot be used: {self.problem}"


def devices() -> list[Device]:
    """The CPU, then each NVIDIA GPU, with model, memory, compute capability and, if it cannot be used, why.

    Where no GPU is found, one line of the name "cuda" says why: no driver, too old a driver, no GPU.
    """
    cpu = Device("cpu", _core.describe()["isa"])
    why, found = _core.devices_of_backend("cuda")
    if why:
        return [cpu, Device("cuda", problem=why)]
    return [cpu, *(_gpu(*about) for about in found)]


def count() -> int:
    """How many NVIDIA GPUs there are, whether they can be used or not."""
    return sum(d.name.startswith("cuda:") for d in devices())


def _gpu(number: int, model: str, memory: int, capability: tuple[int, int], problem: str) -> Device:
    if not problem and not _core.device_brings_code("cuda"):
        from dynet_lite import device_code  # not at import: only who has a GPU needs it

        problem = device_code.problem(capability)
    return Device(f"cuda:{number}", model, memory, capability, problem)


def parse(device: str) -> tuple[str, int]:
    """Backend and number of "cpu", "cuda", "cuda:1"; ValueError for another text, TypeError for what is none."""
    if not isinstance(device, str):
        raise TypeError(f'expected the name of a device, such as "cpu" or "cuda:0", got {device!r}')
    backend, colon, number = device.partition(":")
    _core.check_setting("backend", backend)
    if colon and not (backend == "cuda" and number.isascii() and number.isdigit()):
        raise ValueError(device)
    return backend, int(number) if colon else 0


def known_name(device: str) -> bool:
    """Does a device have this name, in DyNet's way: "CPU", "GPU:0"? GPUs are looked for only if one is named."""
    if device in ("", "CPU", "cpu", b"", b"CPU"):
        return True
    return any(d.usable and d.name == f"cuda:{str(device).removeprefix('GPU:')}" for d in devices()[1:])


def choose(device: str) -> str:
    """Prepares a device to be used when something is first computed on it; the backend's name.

    DeviceError when it cannot be used, with the reason: a process uses one GPU.
    """
    backend, number = parse(device)
    if backend != "cuda":
        return backend
    from dynet_lite import device_code

    in_use = _core.device_in_use(backend)
    if in_use >= 0:
        if in_use != number:
            raise DeviceError(f"[cuda] this process uses GPU {in_use}, and a process uses one GPU; got GPU {number}")
        return backend
    found = devices()[1:]
    gpu = next((d for d in found if d.name == f"cuda:{number}"), None)
    if gpu is None:
        why = found[0].problem if found[0].name == "cuda" else ""
        known = f"there is no GPU {number}: the driver knows {len(found)} (numbered from 0)"
        raise DeviceError(f"[cuda] {why or known}")
    if gpu.problem:
        raise DeviceError(f"[cuda] {gpu.name} ({gpu.model}): {gpu.problem}")
    assert gpu.capability is not None
    try:
        code = b"" if _core.device_brings_code(backend) else device_code.image(gpu.capability)
    except device_code.NoDeviceCode as error:
        raise DeviceError(f"[cuda] {gpu.name} ({gpu.model}): {error}") from None
    _core.choose_device(backend, number, code, device_code.find_cublas().encode())
    return backend
