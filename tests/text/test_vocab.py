"""Vocabularies: ids, counts, unknown words, JSON."""

import json

import pytest

from dynet_lite.text import Vocab


def test_open_vocabulary_grows():
    vocab = Vocab(["b", "a", "b"])
    assert list(vocab) == ["<unk>", "b", "a"]
    assert vocab.count("b") == 2 and vocab.count("new") == 0
    assert vocab["new"] == 3 and "new" in vocab and len(vocab) == 4
    assert vocab.ids(["a", "b"]) == [2, 1]


def test_frozen_vocabulary_does_not_grow():
    vocab = Vocab(["a"]).freeze()
    assert vocab.frozen
    assert vocab["new"] == 0 and "new" not in vocab and len(vocab) == 2
    with pytest.raises(RuntimeError, match="frozen"):
        vocab.add("new")


def test_without_unk():
    vocab = Vocab(["a"], unk=None).freeze()
    assert vocab["a"] == 0 and vocab.unk is None
    with pytest.raises(KeyError):
        vocab["new"]


def test_min_count_and_order():
    vocab = Vocab.from_words("c b b a a d d d".split(), min_count=2)
    assert vocab.words() == ["<unk>", "d", "b", "a"]
    assert vocab.count("<unk>") == 1 and vocab.count("d") == 3
    assert vocab.frozen
    assert Vocab.from_words({"x": 1, "y": 5}).words() == ["<unk>", "y", "x"]


def test_words_that_are_kept():
    vocab = Vocab.from_words("a a </s> b".split(), min_count=2, keep=["</s>", "never seen"])
    assert vocab.words() == ["<unk>", "a", "</s>"] and vocab.count("<unk>") == vocab.count("</s>") == 1


def test_the_word_unk_in_the_text():
    vocab = Vocab.from_words(["<unk>", "a"])
    assert vocab.words() == ["<unk>", "a"] and vocab.count("<unk>") == 1


def test_words_by_id():
    vocab = Vocab(["a"])
    assert vocab.word(1) == "a"
    for index in (2, -1):
        with pytest.raises(IndexError, match="from 0 to 1"):
            vocab.word(index)


@pytest.mark.parametrize("vocab", [Vocab.from_words("b a b".split()), Vocab("ab", unk=None), Vocab()])
def test_json(vocab):
    copy = Vocab.from_json(json.loads(json.dumps(vocab.to_json())))
    assert copy.to_json() == vocab.to_json()
    assert copy.frozen == vocab.frozen and copy.unk == vocab.unk


@pytest.mark.parametrize(
    "change",
    [
        {"words": ["<unk>", "a", "a"]},
        {"counts": [0]},
        {"counts": [0, 1, "2"]},
        {"words": ["a", "b", "c"]},
        {"words": "abc"},
        {"words": ["<unk>", "a", 3]},
    ],
)
def test_json_that_is_no_vocabulary(change):
    value = Vocab("ab").to_json()
    with pytest.raises(ValueError, match="expected a vocabulary"):
        Vocab.from_json(value | change)
    with pytest.raises(ValueError, match="expected a vocabulary"):
        Vocab.from_json({})
