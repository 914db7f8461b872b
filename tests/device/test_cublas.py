"""Large products go to cuBLAS where it is found: which ones, and that the numbers stay the same. On its stand-in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from build import Run

# m * n * k of the forward product is 2 to the 26th, the least that goes there; one side less in `less`.
PROGRAM = """
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

dy.configure(device="cuda", random_seed=3)

def numbers(program, *sizes):
    pc = dy.ParameterCollection()
    dy.renew_cg()
    loss, wanted = program(pc, *sizes)
    loss.backward()
    return [loss.npvalue(), *(e.npvalue() for e in wanted), *(p.grad_as_array() for p in pc.parameters_list()),
            *(p.grad_as_array() for p in pc.lookup_parameters_list())]

def layer(pc, size, many):  # vectors from everywhere in a table, the same one several times; a bias
    W, b, table = pc.add_parameters((512, size)), pc.add_parameters(512), pc.add_lookup_parameters((200, size))
    ys = [dy.tanh(dy.affine_transform([b, W, table[i * 7 % 200]])) for i in range(many)]
    return dy.sum_elems(dy.square(dy.esum(ys))), ys[:3]

def matrices(pc, size, many):  # one product; the argument's gradient
    W, X = pc.add_parameters((512, size)), dy.inputTensor(np.random.RandomState(1).rand(size, many).astype("f"))
    Y = W * X
    return dy.sum_elems(dy.square(Y)), [Y]

def lstm(pc, size, many):
    table, lstm = pc.add_lookup_parameters((70, 16)), dy.VanillaLSTMBuilder(1, 16, size, pc)
    hs = [lstm.initial_state().transduce([table[(i + k) % 70] for i in range(3)])[-1] for k in range(many)]
    return dy.sum_elems(dy.square(dy.esum(hs))), hs[:2]

before = _core.backend_counts()["cublas"]
out = numbers({program}, *{sizes})
np.savez("numbers.npz", *out)
print(_core.backend_counts()["cublas"] - before)
"""


def made(on_gpu: Run, folder: Path, program: str, sizes: tuple[int, int], library: str) -> tuple[int, list[np.ndarray]]:
    done = on_gpu(
        "-c",
        PROGRAM.replace("{program}", program).replace("{sizes}", repr(sizes)),
        DYNET_LITE_LIBCUBLAS=library,
        DYNET_LITE_STANDIN_PRODUCTS=str(folder / "products"),
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    with np.load(folder / "numbers.npz") as found:
        return int(done.stdout), [found[name] for name in found.files]


@pytest.mark.parametrize(
    ("program", "sizes", "products"),
    [
        ("layer", (512, 256), {"512 256 512 NN", "512 256 512 TN", "512 512 256 NT"}),
        ("matrices", (256, 512), {"512 512 256 NN", "512 256 512 NT"}),
        ("lstm", (512, 64), {"2048 64 512 NN", "512 64 2048 TN", "2048 512 128 NT"}),
    ],
)
def test_large_products_go_there(
    program: str, sizes: tuple[int, int], products: set[str], on_gpu: Run, libcuda: Path, tmp_path: Path
) -> None:
    count, there = made(on_gpu, tmp_path, program, sizes, str(libcuda))
    asked = (tmp_path / "products").read_text().splitlines()
    assert set(asked) == products and len(asked) == count
    none, own = made(on_gpu, tmp_path, program, sizes, "none")
    assert none == 0 and len(there) == len(own)
    for a, b in zip(there, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * float(np.abs(b).max()))
    again, same = made(on_gpu, tmp_path, program, sizes, str(libcuda))
    assert again == count and all(np.array_equal(a, b) for a, b in zip(there, same, strict=True))


ALONE = """
import numpy as np
import dynet_lite as dy

dy.configure(device="cuda", random_seed=3)
W, Y = dy.ParameterCollection().add_parameters((512, 512)), dy.inputTensor(np.ones((512, 256), "f"))
there, here = [], [np.ones((512, 256), "f")]
for _ in range(3):
    Y = W * Y
    there.append(Y.npvalue())
    here.append(W.as_array() @ here[-1])
print([bool(np.allclose(a, b, rtol=1e-3, atol=1e-3)) for a, b in zip(there, here[1:])])
"""


def test_a_product_that_comes_alone(on_gpu: Run, libcuda: Path) -> None:
    """There is nothing to be copied to the GPU for it."""
    done = on_gpu("-c", ALONE, DYNET_LITE_LIBCUBLAS=str(libcuda))
    assert done.stdout.strip() == "[True, True, True]", done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize(("program", "sizes"), [("layer", (511, 256)), ("matrices", (255, 512)), ("lstm", (300, 64))])
def test_others_stay(program: str, sizes: tuple[int, int], on_gpu: Run, libcuda: Path, tmp_path: Path) -> None:
    assert made(on_gpu, tmp_path, program, sizes, str(libcuda))[0] == 0


@pytest.mark.parametrize("library", ["", "none", "libnothing.so.7"])
def test_without_the_library(library: str, on_gpu: Run, tmp_path: Path) -> None:
    assert made(on_gpu, tmp_path, "matrices", (256, 512), library)[0] == 0


def test_a_library_that_does_not_start_is_done_without(
    on_gpu: Run, libcuda: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNET_LITE_STANDIN_CUBLAS", "refuses")
    assert made(on_gpu, tmp_path, "matrices", (256, 512), str(libcuda))[0] == 0
