"""The reader of words: tables, letters, hidden words, pretrained vectors."""

from __future__ import annotations

import json
import random
import threading

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import CASES, LetterCNN, WordReader, case_of
from dynet_lite.text import WordVectors

SENTENCES = [["the", "dog", "sees", "the", "cat"], ["a", "dog"]]


def make(known: WordVectors | None = None, **options: object) -> WordReader:
    parts = json.loads(json.dumps(WordReader.build(SENTENCES, known)))
    sizes = {"dim": 4, "char_dim": 3, "char_hidden": 2, "rng": random.Random(1), **options}
    return WordReader(dy.ParameterCollection(), parts, **sizes)


def test_vectors_of_words_and_letters():
    reader = make()
    vectors = [v.npvalue() for v in reader(["the", "elephant", "the", "doh"])]
    assert reader.width == 8 and all(v.shape == (8,) for v in vectors)
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[1][:4] == vectors[3][:4]).all()  # both are unknown words
    assert (vectors[1][4:] != vectors[3][4:]).any()  # with letters of their own
    letters = reader.char_reader([reader.char_table[reader.letters[x]] for x in "the"])
    np.testing.assert_allclose(vectors[0][4:], letters.npvalue(), rtol=1e-6)
    assert make(char_hidden=0)(["dog"])[0].dim() == ((4,), 1)


def test_a_word_is_spelled_once_in_a_graph():
    reader = make()
    reader(["dog", "dog", "the"])
    nodes = len(dy.cg())
    reader(["dog", "the"])
    assert len(dy.cg()) - nodes <= 4  # no LSTM steps: two rows, two concatenations
    dy.renew_cg()
    assert reader(["dog"])[0].npvalue().shape == (8,)  # nothing of the old graph is used


@pytest.mark.parametrize("char_reader", ["lstm", "cnn"])
def test_a_word_is_spelled_anew_after_an_update(char_reader: str):
    model = dy.ParameterCollection()
    sizes = {"dim": 4, "char_dim": 3, "char_hidden": 2, "rng": random.Random(1)}
    reader = WordReader(model, WordReader.build(SENTENCES), char_reader=char_reader, **sizes)
    trainer = dy.SimpleSGDTrainer(model, 1.0)
    dy.renew_cg()
    before = (vector := reader(["dog"])[0]).npvalue()
    dy.squared_norm(vector).backward()
    trainer.update()
    after = reader(["dog"])[0].npvalue()
    dy.renew_cg()
    np.testing.assert_allclose(after, reader(["dog"])[0].npvalue(), rtol=1e-6)
    assert not np.allclose(after[4:], before[4:])


def test_threads_share_a_reader():
    """One reads a word while another is in the middle of reading it: each has its own graph, and what belongs to that."""
    reader = make()
    dy.renew_cg()
    expected = reader(["dog"])[0].npvalue()
    read, began, in_between, found = reader.char_reader, threading.Event(), threading.Event(), []

    def slowly(letters):
        if threading.current_thread() is other:
            began.set()
            in_between.wait()
        return read(letters)

    def reading():
        dy.renew_cg()
        found.append(reader(["dog"])[0].npvalue())

    reader.char_reader = slowly
    other = threading.Thread(target=reading)
    other.start()
    began.wait()
    dy.renew_cg()
    reader(["cat"])
    in_between.set()
    other.join()
    assert (reader(["dog"])[0].npvalue() == expected).all()
    assert len(found) == 1 and (found[0] == expected).all()


def test_long_words_are_cut():
    reader = make()
    reader(["x" * 1000])
    assert len(dy.cg()) < 300
    a, b = (reader([word])[0].npvalue() for word in ("t" * 12 + "h" * 400 + "e" * 12, "t" * 12 + "e" * 12))
    assert (a == b).all()


def test_rare_words_are_hidden_in_training_only():
    reader = make(hide=1.0, char_hidden=0)
    known, unknown = (reader.table.as_array()[i] for i in (reader.words["the"], 0))
    hidden = 0
    for _ in range(300):
        dy.renew_cg()
        value = reader(["the"], training=True)[0].npvalue()
        hidden += np.allclose(value, unknown)
        assert np.allclose(value, unknown) or np.allclose(value, known)
    assert 60 < hidden < 140  # the word was seen twice: 1 / (1 + 2)
    assert np.allclose(reader(["the"])[0].npvalue(), known)


def test_pretrained_vectors():
    vectors = WordVectors(["dog", "elephant"], np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32))
    reader = make(vectors, char_hidden=0)
    assert reader.use(vectors) == 2
    assert reader(["elephant"])[0].value() == [5, 6, 7, 8]  # known, though it was not in the training sentences
    assert reader(["Dog"])[0].value() == reader(["zebra"])[0].value()


def test_letters_by_filters_are_a_convolution():
    reader = LetterCNN(dy.ParameterCollection(), 3, 5, window=3)
    letters = np.random.default_rng(1).normal(size=(4, 3))
    found = reader([dy.inputTensor(x) for x in letters]).npvalue()
    padded = np.concatenate([np.zeros((1, 3)), letters, np.zeros((1, 3))])
    F, b = [f.as_array() for f in reader.filters], reader.bias.as_array()
    answers = [sum(F[k] @ padded[i + k] for k in range(3)) + b for i in range(4)]
    np.testing.assert_allclose(found, np.maximum(0, np.max(answers, axis=0)), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="window must be odd; got 2"):
        LetterCNN(dy.ParameterCollection(), 3, 5, window=2)


@pytest.mark.parametrize("char_reader", ["lstm", "cnn"])
def test_parts_of_a_vector(char_reader):
    reader = make(char_reader=char_reader, case_dim=3)
    assert reader.width == 4 + 4 + 3
    dog, large = (v.npvalue() for v in reader(["dog", "DOG"]))
    assert dog.shape == (11,) and (dog[8:] != large[8:]).all() and (dog[:4] != large[:4]).all()
    with pytest.raises(ValueError, match="char_reader must be lstm or cnn; got 'gru'"):
        make(char_reader="gru")


def test_folded_words():
    reader = WordReader(
        dy.ParameterCollection(), WordReader.build([["Dog", "dog", "DOG"]], fold=True), dim=4, rng=random.Random(1)
    )
    assert reader.words.words() == ["<unk>", "dog"] and reader.words.count("dog") == 3
    assert reader(["dOg"])[0].value() == reader(["dog"])[0].value() != reader(["cat"])[0].value()


def test_cases():
    words = ["house", "House", "HOUSE", "McDonald", "1,990.5", "1990s", "--", "I", "don't", "Écran"]
    wanted = ["lower", "first", "upper", "mixed", "number", "digits", "other", "upper", "lower", "first"]
    assert [case_of(word) for word in words] == wanted and set(wanted) == set(CASES)
