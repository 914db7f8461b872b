"""IOB columns: reading, the three ways to write spans, chunks of trees and of NLTK's corpora."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from dynet_lite.text import (
    DataError,
    SpanScore,
    chunks_of_tree,
    columns,
    load_nltk_chunks,
    parse_trees,
    read_chunks_of_trees,
    read_columns,
    spans,
    to_bioes,
    to_iob1,
    to_iob2,
)

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("DYNET_LITE_CORPORA", ROOT.parent / "shared" / "corpora"))


def test_conll2003_and_iob1(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(
        "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n\nBonn NNP I-NP I-LOC\n"
        "Paris NNP I-NP B-LOC\n"
    )
    first, second = read_columns(file)
    assert first.forms == ["EU", "rejects", "German"]
    assert first.labels == ["B-ORG", "O", "B-MISC"] and first.tags == ["NNP", "VBZ", "JJ"]
    assert second.labels == ["B-LOC", "B-LOC"]
    assert read_columns(file, label=2)[0].labels == ["B-NP", "B-VP", "B-NP"]


def test_tabs_and_comments(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("# id = 7\n#text = a # b\nNew York\tB-LOC\n#\tO\n\n# B-X\n")
    first, second = read_columns(file)
    assert (first.forms, first.labels) == (["New York", "#"], ["B-LOC", "O"])
    assert (second.forms, second.labels) == (["#"], ["B-X"])


def test_comments_that_end_like_a_label(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("# text = Take the U-Bahn.\nTake\tO\n\n#text = The E-mail\nThe\tO\n\n# NN I-NP B-X\n")
    assert [(x.forms, x.labels) for x in read_columns(file)] == [(["Take"], ["O"]), (["The"], ["O"]), (["#"], ["B-X"])]


@pytest.mark.parametrize("label", [1, -2])
def test_labels_are_never_the_tags(tmp_path, label):
    file = tmp_path / "a.txt"
    file.write_text("EU B-ORG NNP\nrejects O VBZ\n")
    (sentence,) = read_columns(file, label)
    assert sentence.labels == ["B-ORG", "O"] and sentence.tags == []


@pytest.mark.parametrize(
    "text, line, what",
    [
        ("EU B-ORG\nrejects\n", 2, "a word and a label"),
        ("EU B-ORG\nrejects VBZ O\n", 2, "2 columns"),
        ("EU B-ORG\n\nrejects X\n", 3, "O, B-TYPE or I-TYPE"),
        ("EU NNP\n", 1, "label"),
        ("EU\tB-ORG\n\tO\n", 2, "a word before the first tab"),
    ],
)
def test_malformed(tmp_path, text, line, what):
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=what) as caught:
        read_columns(file)
    assert f"bad.txt:{line}:" in str(caught.value)


def test_not_utf8(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_bytes(b"EU B-ORG\n\xff\xfe O\n")
    with pytest.raises(DataError, match=r"bad.txt:2: expected UTF-8"):
        read_columns(file)


def test_conversions():
    assert to_iob2(["I-A", "I-A", "I-B", "B-B", "O", "I-A"]) == ["B-A", "I-A", "B-B", "B-B", "O", "B-A"]
    assert to_iob2(["S-A", "B-A", "I-A", "E-A", "S-B", "O"]) == ["B-A", "B-A", "I-A", "I-A", "B-B", "O"]
    assert to_iob2(["U-A", "B-A", "L-A", "I-A"]) == ["B-A", "B-A", "I-A", "B-A"]


def random_iob2(rng: random.Random) -> list[str]:
    labels: list[str] = []
    while len(labels) < 12:
        kind, length = rng.choice("AB"), rng.randint(1, 3)
        labels += rng.choice([["O"] * length, [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]])
    return labels


@pytest.mark.parametrize("seed", range(20))
def test_schemes_say_the_same(seed):
    labels = random_iob2(random.Random(seed))
    assert to_iob2(to_iob1(labels)) == to_iob2(to_bioes(labels)) == labels


@pytest.mark.parametrize("seed", range(20))
def test_schemes_as_seqeval_reads_them(seed):
    scheme = pytest.importorskip("seqeval.scheme")
    labels = random_iob2(random.Random(seed))
    wanted = [(kind, start, end) for start, end, kind in spans(labels)]
    for converted, kind in ((labels, scheme.IOB2), (to_iob1(labels), scheme.IOB1), (to_bioes(labels), scheme.IOBES)):
        found = scheme.Entities([converted], scheme=kind).entities[0]
        assert [entity.to_tuple()[1:] for entity in found] == wanted


def test_conversions_from_iob2():
    labels = ["B-A", "I-A", "B-A", "O", "B-B", "B-A", "I-A", "I-A"]
    assert to_iob1(labels) == ["I-A", "I-A", "B-A", "O", "I-B", "I-A", "I-A", "I-A"]
    assert to_bioes(labels) == ["B-A", "E-A", "S-A", "O", "S-B", "B-A", "I-A", "E-A"]
    assert to_iob1([]) == to_iob2([]) == to_bioes([]) == []


def test_spans():
    assert spans(["B-A", "I-A", "B-A", "O", "I-B", "I-C"]) == [(0, 2, "A"), (2, 3, "A"), (4, 5, "B"), (5, 6, "C")]
    assert spans([]) == []


def test_chunks_of_a_tree():
    (tree,) = parse_trees(
        ["(S (NP-SBJ (NP (DT the) (ADJP (RB very) (JJ old)) (NN house)) (PP (IN on) (NP (NNP Mill)))) (, ,)"
         " (VP (VBZ has) (VP (VBN been) (VP (VBN saved)))) (SBAR (WHNP (WDT which)) (S (VP (VBD fell)))) (. .))"]
    )  # fmt: skip
    chunked = chunks_of_tree(tree)
    assert " ".join(f"{w}/{label}" for w, label in zip(chunked.forms, chunked.labels, strict=True)) == (
        "the/B-NP very/I-NP old/I-NP house/I-NP on/B-PP Mill/B-NP ,/O has/B-VP been/I-VP saved/I-VP which/B-NP fell/B-VP ./O"
    )
    assert chunked.tags[0] == "DT"


def test_chunks_of_the_treebank():
    sentences = read_chunks_of_trees(ROOT / "data/treebank/dev.ptb")
    assert len(sentences) == 59
    assert all(to_iob2(s.labels) == s.labels and len(s.labels) == len(s.forms) for s in sentences)


@pytest.mark.skipif(not (CORPORA / "nltk_data/corpora/conll2000").is_dir(), reason="conll2000 is not there")
def test_conll2000(monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(CORPORA / "nltk_data"))
    train, dev, test = load_nltk_chunks("conll2000")
    assert (len(train), len(dev), len(test)) == (8936, 0, 2012)
    score = SpanScore()
    for sentence in test:
        score.add(sentence.labels, sentence.labels)
    assert score.wanted == 23852 and score.f1 == 1.0


def test_parts_of_a_corpus_of_nltk(monkeypatch):
    """CoNLL-2002 calls its dev part testa."""
    files = ["esp.testa", "esp.testb", "esp.train"]
    said = {"fileids": lambda: files, "iob_sents": lambda file: [[(file, "N", "I-PER")]]}
    monkeypatch.setattr(columns, "read_nltk", lambda name, method, needs, *args: said[method](*args))
    parts = load_nltk_chunks("conll2002")
    assert [[x.forms[0] for x in part] for part in parts] == [["esp.train"], ["esp.testa"], ["esp.testb"]]
    del files[2]
    assert [len(part) for part in load_nltk_chunks("conll2002")] == [2, 0, 0]
