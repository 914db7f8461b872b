"""Dict, lines as ids, word vectors into tables: what DyNet has in C++ only."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy


def test_dict() -> None:
    d = dy.Dict(["a", "b"])
    assert (d.convert("a"), d.convert("c"), d["b"], d.convert(2)) == (0, 2, 1, "c")
    assert (d.size(), len(d), d.contains("c"), "x" in d, list(d)) == (3, 3, True, False, ["a", "b", "c"])
    with pytest.raises(RuntimeError, match="freeze"):
        d.set_unk("<unk>")
    assert not d.is_frozen() and d.get_unk_id() == -1
    d.freeze()
    assert d.is_frozen()
    for error in (RuntimeError, KeyError):
        with pytest.raises(error, match="'x' is not in the dictionary"):
            d.convert("x")
    d.set_unk("<unk>")
    assert d.convert("x") == d.get_unk_id() == 3 and d.get_words() == ["a", "b", "c", "<unk>"]
    with pytest.raises(RuntimeError, match="before"):
        d.set_unk("y")
    for number in (-1, 4):
        with pytest.raises(ValueError, match="of 4"):
            d.convert(number)
    copied = pickle.loads(pickle.dumps(d))
    assert copied.convert("x") == 3 and repr(copied) == "<Dict of 4 words, frozen>"
    d.clear()
    assert d.size() == 0 and d.is_frozen()
    for wrong in (1.0, b"a", None):
        with pytest.raises(TypeError, match="a word or the id of one is needed"):
            d.convert(wrong)  # type: ignore[call-overload]


def test_read_sentence() -> None:
    s, t = dy.Dict(), dy.Dict()
    assert dy.read_sentence("the cat  the\tdog \n", s) == [0, 1, 0, 2]
    assert dy.read_sentence_pair("the dog ||| le chien", s, t) == ([0, 2], [0, 1])
    assert dy.read_sentence("", s) == []
    assert dy.read_sentence("8\u00a01/2 the", dy.Dict(["8\u00a01/2", "the"])) == [0, 1]  # as C splits


@pytest.mark.parametrize("first", ["", "3 2\n"])
def test_embeddings(first: str, tmp_path: Path) -> None:
    """Files of GloVe and of word2vec."""
    path = tmp_path / "v.txt"
    path.write_text(first + "a 1 2\nb -0.5 1e-3\nc 3 4\n", encoding="utf-8")
    d = dy.Dict(["b"])
    vectors = dy.read_pretrained_embeddings(path, d)
    assert d.get_words() == ["b", "a", "c"]
    np.testing.assert_allclose(vectors[0], [-0.5, 1e-3])
    np.testing.assert_allclose(vectors[1], [1, 2])
    frozen = dy.Dict(["x", "a"])
    frozen.freeze()
    assert list(dy.read_pretrained_embeddings(path, frozen)) == [1]

    p = dy.ParameterCollection().add_lookup_parameters((3, 2), init=7)
    assert dy.fill_from_embeddings(p, path, {"a": 2, "unheard": 0}) == 1
    np.testing.assert_allclose(p.as_array(), [[7, 7], [7, 7], [1, 2]])
    with pytest.raises(IndexError, match="3 rows"):
        dy.fill_from_embeddings(p, path, {"a": 3})
    wrong = dy.ParameterCollection().add_lookup_parameters((3, 5))
    with pytest.raises(ValueError, match="2 numbers"):
        dy.fill_from_embeddings(wrong, path, {"a": 0})


@pytest.mark.parametrize(
    ("words", "value", "what"),
    [
        (["a b", "c"], 1, "'a b'"),
        (["", "c"], 1, "''"),
        (["c", "a\nb"], 1, r"'a\\nb'"),
        (["a", "c"], float("nan"), "NaN"),
        (["\ufeffa", "c"], 1, r"'\\ufeffa .*' would not be read"),
        (["c", "a\t1"], 1, r"'a\\t1 .*' would not be read"),
    ],
)
def test_embeddings_that_could_not_be_read_again(tmp_path: Path, words: list[str], value: float, what: str) -> None:
    p = dy.ParameterCollection().add_lookup_parameters((2, 2))
    p.init_row(1, [value, 0])
    (tmp_path / "v").write_text("a 1 2\n")
    with pytest.raises(ValueError, match=what):
        dy.save_pretrained_embeddings(tmp_path / "v", dy.Dict(words), p)
    assert (tmp_path / "v").read_text() == "a 1 2\n"


def test_embeddings_that_begin_like_a_header(tmp_path: Path) -> None:
    """A file that begins with two whole numbers tells how many words and numbers there are."""
    p = dy.ParameterCollection().lookup_parameters_from_numpy(np.array([[7.0], [0.5]]))
    with pytest.raises(ValueError, match="'10 7' would not be read as the word '10'"):
        dy.save_pretrained_embeddings(tmp_path / "v", dy.Dict(["10", "c"]), p)
    for words, numbers in ((["c", "10"], [7.0, 0.5]), (["10", "c"], [0.5, 7.0])):
        p.init_from_array(np.array(numbers)[:, None])
        dy.save_pretrained_embeddings(tmp_path / "v", dy.Dict(words), p)
        found = dy.read_pretrained_embeddings(tmp_path / "v", back := dy.Dict())
        assert back.get_words() == words and [float(found[i][0]) for i in range(2)] == numbers


def test_embeddings_of_words_with_blanks(tmp_path: Path) -> None:
    d = dy.Dict(["\t", "a b", ". . ."])
    p = dy.ParameterCollection().lookup_parameters_from_numpy(np.array([[0, 0], [1.5, -1], [3, 4]]))
    dy.save_pretrained_embeddings(tmp_path / "v", d, p)
    found = dy.read_pretrained_embeddings(tmp_path / "v", back := dy.Dict())
    assert back.get_words() == d.get_words()
    np.testing.assert_array_equal([found[i] for i in range(3)], p.as_array())


def test_embeddings_there_and_back(tmp_path: Path) -> None:
    d = dy.Dict(["a", "b", "c"])
    p = dy.ParameterCollection().add_lookup_parameters((4, 6))
    dy.save_pretrained_embeddings(tmp_path / "v", d, p)
    assert dy.fill_from_embeddings(q := dy.ParameterCollection().add_lookup_parameters((4, 6)), tmp_path / "v", d) == 3
    np.testing.assert_array_equal(p.as_array()[:3], q.as_array()[:3])
    with pytest.raises(ValueError, match="4 rows"):
        dy.save_pretrained_embeddings(tmp_path / "w", dy.Dict("abcde"), p)
    with pytest.raises(FileNotFoundError):
        dy.read_pretrained_embeddings(tmp_path / "none", d)
