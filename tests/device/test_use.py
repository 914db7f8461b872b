"""How a GPU is asked for, and what is said when there is none: on the stand-in for the driver."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from build import Run

RECIPE = str(Path(__file__).resolve().parents[2] / "recipes" / "bilstm_tagger.py")
WHERE = "import dynet_lite as dy; print(dy.tanh(dy.inputTensor([0.0])).value(), dy._core.backend_counts()['calls'])"
DEVICES = "import dynet_lite as dy\nfor d in dy.devices(): print(d)"
ASK = (
    "import dynet_lite as dy\ntry: dy.configure(device='cuda{number}')\nexcept dy.DeviceError as e: print(e)\n" + WHERE
)


def said(done: object) -> str:
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"  # type: ignore[attr-defined]
    return str(done.stdout).strip()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "before", ["dy.configure(device='cuda')", "dy.configure(device='cuda:0')", "dy.dynet_config.set_gpu()",
               "p = dy.DynetParams(); p.set_requested_gpus(1); p.init()", "dy.configure(backend='cuda')",
               "p = dy.DynetParams(); p.set_gpu_mask([1, 0]); p.init()", "dy.dynet_config.set(requested_gpus=1)"]
)  # fmt: skip
def test_calls_that_ask_for_a_gpu(before: str, on_gpu: Run) -> None:
    assert said(on_gpu("-c", f"import dynet_lite as dy; {before}; {WHERE}")) == "0.0 1"


@pytest.mark.parametrize(
    "flags", ["--dynet-gpu", "--dynet_gpus=1", "--dynet-gpus 2", "--dynet-devices GPU:0", "--dynet-devices=CPU,GPU:0",
              "--dynet-device cuda", "--dynet-gpu-ids 0"]
)  # fmt: skip
def test_flags_that_ask_for_a_gpu(flags: str, on_gpu: Run) -> None:
    done = on_gpu("-c", WHERE, *flags.split())
    assert said(done) == "0.0 1" and not done.stderr


@pytest.mark.parametrize("flags", ["", "--dynet-gpus 0", "--dynet-devices CPU"])
def test_what_asks_for_no_gpu(flags: str, on_gpu: Run) -> None:
    assert said(on_gpu("-c", WHERE, *flags.split())) == "0.0 0"


def test_a_variable_asks_for_a_gpu(on_gpu: Run) -> None:
    assert said(on_gpu("-c", WHERE, DYNET_LITE_DEVICE="cuda:0")) == "0.0 1"
    assert said(on_gpu("-c", WHERE, DYNET_LITE_BACKEND="cuda")) == "0.0 1"
    assert said(on_gpu("-c", WHERE, "--dynet-gpu", DYNET_LITE_DEVICE="cpu")) == "0.0 0"
    block = "import dynet_lite as dy\nwith dy.configure(device='cpu'): pass\n" + WHERE
    assert said(on_gpu("-c", block, DYNET_LITE_DEVICE="cuda")) == "0.0 1"


def test_gpus_have_numbers(on_gpu: Run) -> None:
    two = "import dynet_lite as dy; dy.configure(device='cuda:1'); dy.inputTensor([1.0]).value()\n"
    two += "try: dy.configure(device='cuda')\nexcept dy.DeviceError as e: print(e)\nprint(dy.config.get('device'))"
    text = said(on_gpu("-c", two, faults="gpus=2")).splitlines()
    assert text == ["[cuda] this process uses GPU 1, and a process uses one GPU; got GPU 0", "cuda:1"]
    text = said(on_gpu("-c", ASK.format(number=":2"), faults="gpus=2"))
    assert text.splitlines() == ["[cuda] there is no GPU 2: the driver knows 2 (numbered from 0)", "0.0 0"]


def test_devices_are_listed(on_gpu: Run) -> None:
    text = said(on_gpu("-c", DEVICES, faults="gpus=2,capability=86")).splitlines()
    assert text[0].startswith("cpu: ")
    assert text[1:] == [f"cuda:{n}: stand-in, 16.0 GB, compute capability 8.6" for n in (0, 1)]
    assert "\n  cuda:0: stand-in, 16.0 GB" in said(on_gpu("-m", "dynet_lite", "info"))
    names = "import dynet_lite as dy; print(dy.available_devices(), dy.get_device_info('GPU:0').type)"
    assert said(on_gpu("-c", names)) == "['CPU', 'GPU:0'] GPU"


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        ("gpus=0", "the NVIDIA driver finds no GPU"),
        ("version=11080", "the NVIDIA driver is too old: it knows CUDA 11.8, and 12.0 is needed"),
        ("capability=61", "compute capability 6.1, and 7.0 is needed"),
    ],
)
def test_why_a_gpu_cannot_be_used(faults: str, why: str, on_gpu: Run) -> None:
    assert said(on_gpu("-c", DEVICES, faults=faults)).splitlines()[1].endswith("cannot be used: " + why)
    first, second = said(on_gpu("-c", ASK.format(number=""), faults=faults)).splitlines()
    assert first.startswith("[cuda] ") and first.endswith(why)
    assert second == "0.0 0"  # the process goes on


# A package that was built from source, where NVIDIA's compiler is not installed. The stand-in has kernels of its own, a driver none.
NO_KERNELS = """
from dynet_lite import _core, device_code
_core.device_brings_code = lambda backend: False
device_code.packaged = lambda capability: None
device_code.find_compiler = lambda: None
"""


def test_what_a_package_without_kernels_would_need(on_gpu: Run) -> None:
    need = "no kernels for compute capability 8.6: install a wheel of dynet_lite, or NVIDIA's compiler (pip install nvidia-"
    done = on_gpu("-c", f"{NO_KERNELS}{DEVICES}\n{ASK.format(number='')}", faults="capability=86")
    _, listed, refused, goes_on = said(done).splitlines()
    assert listed.startswith("cuda:0: stand-in") and need in listed
    assert refused.startswith("[cuda] cuda:0 (stand-in): ") and need in refused
    assert goes_on == "0.0 0"


def test_dynets_flags_fall_back_with_a_warning(on_gpu: Run) -> None:
    done = on_gpu("-c", WHERE, "--dynet-gpu", faults="gpus=0")
    assert said(done) == "0.0 0"
    assert "--dynet-gpu: [cuda] the NVIDIA driver finds no GPU; dynet_lite runs on the CPU" in done.stderr


def test_a_variable_that_cannot_be_followed_is_an_error(on_gpu: Run) -> None:
    done = on_gpu("-c", WHERE, faults="gpus=0", DYNET_LITE_DEVICE="cuda")
    assert done.returncode == 1 and "DeviceError: [cuda] the NVIDIA driver finds no GPU" in done.stderr


def test_a_recipe_goes_from_gpu_to_processor(on_gpu: Run, tmp_path: Path) -> None:
    """Trained and saved there, used here; the same numbers."""
    trained = said(on_gpu(RECIPE, "--smoke", "--device", "cuda", "--save", "model"))
    dev = Path(RECIPE).parents[1] / "data" / "treebank" / "dev.conllu"
    here = said(on_gpu(RECIPE, "evaluate", "--load", "model", str(dev)))
    there = said(on_gpu(RECIPE, "evaluate", "--load", "model", "--device", "cuda", str(dev)))
    assert here == there
    assert "epoch  1" in trained
    cpu = said(on_gpu(RECIPE, "--smoke"))
    loss = [re.search(r"loss (\S+)", text) for text in (trained, cpu)]
    assert loss[0] and loss[1] and abs(float(loss[0][1]) - float(loss[1][1])) < 1e-3


def test_a_recipe_says_why_in_one_line(on_gpu: Run) -> None:
    done = on_gpu(RECIPE, "--smoke", "--device", "cuda", faults="gpus=0")
    assert done.returncode == 2 and done.stderr.strip() == "error: [cuda] the NVIDIA driver finds no GPU"
    done = on_gpu(RECIPE, "--smoke", "--device", "gpu")
    assert done.returncode == 2 and "device: expected cpu, cuda or cuda:N, got 'gpu'" in done.stderr


def test_compare_on_a_gpu(on_gpu: Run) -> None:
    words = ["--batch-sizes", "4", "--strategies", "greedy", "--rounds", "1", "--device", "cuda", "--", "--smoke"]
    assert "computed on cuda:0: stand-in" in said(on_gpu("-m", "dynet_lite", "compare", RECIPE, *words))
