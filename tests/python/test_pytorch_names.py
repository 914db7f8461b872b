"""Names that programs for PyTorch use: who uses one is told what to write, and nothing else notices them."""

from __future__ import annotations

import copy
import inspect
import pickle
import types
from pathlib import Path
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite import _core, pytorch_names

PAGE = Path(__file__).parents[2] / pytorch_names.PAGE


def tells(words: str) -> Any:
    return pytest.raises(AttributeError, match=rf"not here, unlike in PyTorch: .*{words}.*coming_from_pytorch")


@pytest.mark.parametrize("name", sorted(pytorch_names.MODULE))
def test_names_of_the_module(name: str) -> None:
    missing = getattr(dy, name)
    assert isinstance(missing, _core._Missing), "if it exists now, its row goes"
    for use in (
        lambda: missing(3, 4),
        lambda: missing.anything,
        lambda: types.new_class("A", (missing,)),
        missing.__enter__,
    ):
        with tells(r"(write|not needed)") as caught:
            use()
        assert caught.traceback[-1].path in (Path(__file__), Path(types.__file__)), "a trace ends at the program's line"
    assert name not in dir(dy) and name not in dy.__all__
    assert PAGE.is_file()


def test_a_class_and_a_block() -> None:
    with tells("a class of your own"):

        class Net(dy.Module):  # type: ignore[misc]
            pass

    with tells("not needed"), dy.no_grad():
        pass


def objects() -> list[tuple[Any, dict[str, str]]]:
    m = dy.ParameterCollection()
    p = m.add_parameters(3)
    table = m.add_lookup_parameters((4, 3))
    expressions = [p, table, p + table[0], table[1], dy.inputVector([1, 2, 3])]
    return [
        (m, pytorch_names.COLLECTION),
        (m.add_subcollection(), pytorch_names.COLLECTION),
        (dy.AdamTrainer(m), pytorch_names.TRAINER),
        *((e, pytorch_names.EXPRESSION) for e in expressions),
    ]


def test_names_of_objects() -> None:
    for obj, table in objects():
        for name, instead in table.items():
            with pytest.raises(AttributeError) as caught:
                getattr(obj, name)
            assert caught.traceback[-1].path == Path(__file__), "a trace ends at the program's line"
            assert str(caught.value).startswith(f"[{type(obj).__name__}] {name} is not here") and instead in str(
                caught.value
            )
            assert not hasattr(obj, name) and name not in dir(obj)
        assert {n for n, v in inspect.getmembers(type(obj)) if isinstance(v, _core._Elsewhere)} == set(table)
    assert {"npvalue", "value", "item"} <= set(dir(dy.inputVector([1])))


def test_a_programs_own_names_come_first() -> None:
    class Mine(dy.ParameterCollection):
        def parameters(self) -> list[dy.Parameters]:
            return self.parameters_list()

    class Stepped(dy.SimpleSGDTrainer):
        def __init__(self, m: dy.ParameterCollection) -> None:
            super().__init__(m)
            self.step = 5

    m = Mine()
    p = m.add_parameters(2)
    trainer = Stepped(m)
    assert m.parameters() == [p] and "parameters" in dir(m)
    assert trainer.step == 5 and copy.deepcopy(trainer).step == 5 and "step" in dir(trainer)
    assert pickle.loads(pickle.dumps(dy.AdamTrainer(dy.ParameterCollection()))).updates == 0


def test_words_of_errors() -> None:
    """Found by programs with such mistakes: text is one label, not letters; nothing was given, so nothing is listed."""
    x = dy.inputVector([1, 2, 3])
    with pytest.raises(TypeError, match="must be a whole number; got 'NN'$"):
        dy.pickneglogsoftmax(x, "NN")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a whole number; got 'NN'$"):
        dy.pick(x, "NN")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="argument: 'm'$"):
        dy.SimpleSGDTrainer()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"\[Tensor\] .*dy.inputTensor"):
        dy.Tensor([1, 2])  # type: ignore[arg-type]
