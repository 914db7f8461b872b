"""Classified texts, parallel text, word vectors, subwords."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from dynet_lite.text import (
    BytePairs,
    DataError,
    char_ngrams,
    has_brackets,
    load_nltk_classified,
    read_classified,
    read_pairs,
    read_parallel,
    read_polarity_of_trees,
    read_vectors,
    subwords,
)

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("DYNET_LITE_CORPORA", ROOT.parent / "shared" / "corpora"))


def test_classified(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("pos\ta fine film\n\nneg\t dull \n")
    texts = read_classified(file)
    assert [(t.label, t.words) for t in texts] == [("pos", ["a", "fine", "film"]), ("neg", ["dull"])]
    for bad in ("pos a fine film\n", "pos\t\n", "\ttext\n", "pos\ta\tb\n"):
        file.write_text("pos\tx\n" + bad)
        with pytest.raises(DataError, match=r"a.tsv:2: expected CLASS<tab>TEXT"):
            read_classified(file)
    file.write_text("sentence\tlabel\na fine film\t1\na dull film\t0\nfine\t1\n")  # as GLUE's files are
    assert [(t.label, t.words[-1]) for t in read_classified(file)] == [("1", "film"), ("0", "film"), ("1", "fine")]
    file.write_text("")
    assert read_classified(file) == []


def test_polarity_of_trees(tmp_path):
    texts = read_polarity_of_trees(ROOT / "data/treebank/dev.sst")
    assert {t.label for t in texts} == {"positive", "negative"}
    file = tmp_path / "a.sst"
    file.write_text("(3 (2 a) (3 b))\n(S (2 a) (3 b))\n")
    with pytest.raises(DataError, match="class from 0 to 4 at the root of tree 2"):
        read_polarity_of_trees(file)


@pytest.mark.skipif(not (CORPORA / "nltk_data/corpora/sentence_polarity").is_dir(), reason="the corpus is not there")
def test_sentence_polarity(monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(CORPORA / "nltk_data"))
    texts = load_nltk_classified("sentence_polarity")
    assert len(texts) == 10662 and {t.label for t in texts[:20]} == {"pos", "neg"}
    assert load_nltk_classified("sentence_polarity")[5].words == texts[5].words


def test_parallel(tmp_path):
    left, right = tmp_path / "a.src", tmp_path / "a.tgt"
    left.write_text("a b\n\nc\n")
    right.write_text("A B\n\nC C\n")
    assert [(p.source, p.target) for p in read_parallel(left, right)] == [(["a", "b"], ["A", "B"]), (["c"], ["C", "C"])]
    right.write_text("A B\n\n")
    with pytest.raises(DataError, match=r"a.tgt:3: expected 3 lines, got 2"):
        read_parallel(left, right)
    right.write_text("A B\nX\nC\n")
    with pytest.raises(DataError, match=r"a.src:2: expected text"):
        read_parallel(left, right)
    table = tmp_path / "a.tsv"
    table.write_text("a b\tA B\nc C\n")
    with pytest.raises(DataError, match=r"a.tsv:2: expected SOURCE<tab>TARGET"):
        read_pairs(table)


def test_vectors_of_both_kinds(tmp_path):
    glove, word2vec = tmp_path / "glove.txt", tmp_path / "w2v.txt.gz"
    glove.write_text("the 1 2.5 -3\n. . . 4 5 6\nthe 9 9 9\n")
    with gzip.open(word2vec, "wt") as file:
        file.write("2 3\nthe 1 2.5 -3 \nhouse 7 8 9 \n")
    vectors = read_vectors(glove)
    assert vectors.words == ["the", ". . ."] and vectors.size == 3
    assert vectors.matrix.tolist() == [[1, 2.5, -3], [4, 5, 6]]
    vectors = read_vectors(word2vec, keep={"house"})
    assert vectors.words == ["house"]
    table = np.zeros((3, 3), np.float32)
    assert vectors.fill(table, ["<unk>", "House", "tree"]) == 1  # lower case is tried, too
    assert table.tolist() == [[0, 0, 0], [7, 8, 9], [0, 0, 0]]
    with pytest.raises(DataError, match="3 numbers each, expected 2"):
        vectors.fill(np.zeros((1, 2), np.float32), ["a"])


@pytest.mark.parametrize(
    "text, what",
    [
        ("the 1 2\nhouse 1\n", ":2: expected a word and 2 numbers, got 1"),
        ("the 1 2\nhouse 1 x\n", ":2: expected 2 numbers after 'house'"),
        ("the 1 nan\n", ":1: expected finite numbers"),
        ("", "an empty file"),
    ],
)
def test_malformed_vectors(tmp_path, text, what):
    file = tmp_path / "v.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=what):
        read_vectors(file)


def test_byte_pairs():
    pieces = BytePairs.learn({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 10)
    assert pieces.merges[:3] == [("e", "s"), ("es", "t</w>"), ("l", "o")]  # 9, 9 and 7 times; the paper's example
    assert pieces.split("lowest") == ["lo", "w", "est</w>"]
    assert pieces.split("xyz") == ["x", "y", "z</w>"] and pieces.split("") == []
    text = "low lowest xyz".split()
    assert BytePairs.join(pieces.split_all(text)) == text
    again = BytePairs.from_json(pieces.to_json())
    assert again.split("newer") == pieces.split("newer")


def test_byte_pairs_join_what_is_most_frequent():
    """The learner keeps its counts up to date: each join is the most frequent pair of the text as it is then."""
    words = {"aaab": 3, "abab": 4, "baaa": 2, "bbbb": 5, "abba": 1}
    learned = BytePairs.learn(words, 6).merges
    parts = {w: [*w[:-1], w[-1] + "</w>"] for w in words}
    for best in learned:
        counts: dict[tuple[str, str], int] = {}
        for word, pieces in parts.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                counts[pair] = counts.get(pair, 0) + words[word]
        assert counts[best] == max(counts.values())
        for word, pieces in parts.items():
            out: list[str] = []
            for piece in pieces:
                if out and (out[-1], piece) == best and not out[-1].startswith("\0"):
                    out[-1] = "\0" + out[-1] + piece  # the mark keeps a piece just made from being joined again
                else:
                    out.append(piece)
            parts[word] = [piece.lstrip("\0") for piece in out]


def test_byte_pairs_do_not_remember_all_words(monkeypatch):
    monkeypatch.setattr(subwords, "KEPT", 10)
    pairs = BytePairs([("a", "b</w>")])
    for i in range(35):
        assert pairs.split(f"{i}ab") == [*str(i), "ab</w>"]
        assert len(pairs._known) <= 10


def test_char_ngrams():
    assert char_ngrams("ab", 2, 3) == ["<a", "ab", "b>", "<ab", "ab>"]


@pytest.mark.parametrize(
    "text, trees",
    [
        ("(3 (2 a) (4 b))\n", True),
        ("\n( (S\n  (NP x)))\n", True),
        ("(S\n (NP x))", True),
        ("( ( O\na DT B-NP\n", False),
        ("(\tB-X\n", False),
        ("pos\t(a text)\n", False),
        ("( B-X\n", False),
        ("", False),
    ],
)
def test_what_looks_like_trees(tmp_path, text, trees):
    file = tmp_path / "a.txt"
    file.write_text(text)
    assert has_brackets(file) is trees
