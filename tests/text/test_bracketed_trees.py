"""Bracketed trees: what is read, what is refused, and the ways to and from NLTK."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynet_lite.text import DataError
from dynet_lite.text.trees import Tree, load_nltk_trees, parse_trees, read_trees

TREEBANK = Path(__file__).resolve().parents[2] / "data" / "treebank"


def parse(text: str) -> list[Tree]:
    return list(parse_trees(text.split("\n"), "a.txt"))


@pytest.mark.parametrize("name", ["train.sst", "dev.ptb"])
def test_the_projects_trees_come_back_as_they_were(name):
    lines = (TREEBANK / name).read_text(encoding="utf-8").split("\n")
    assert [str(tree) for tree in read_trees(TREEBANK / name)] == [line for line in lines if line]


def test_nodes_come_children_first():
    (tree,) = parse("(S (NP (PRP We)) (VP (VBD left) (NP (PRP it))) (. .))")
    assert [node.label for node in tree.nodes()] == ["PRP", "NP", "VBD", "PRP", "NP", "VP", ".", "S"]
    assert tree.words() == ["We", "left", "it", "."] and len(tree) == 4


def test_several_lines_and_an_outer_bracket():
    first, second = parse("( (S\n  (NP (PRP We))\n (VP (VBD left))) )\n\n(2 (1 a)(3 b))")
    assert str(first) == "(S (NP (PRP We)) (VP (VBD left)))"
    assert str(second) == "(2 (1 a) (3 b))"


def test_narrow():
    (tree,) = parse("(A (B b) (C c) (D d) (E (F f)))")
    assert str(tree.narrow()) == "(A (B b) (A (C c) (A (D d) (E (F f)))))"
    assert str(tree.narrow(3)) == "(A (B b) (A (C c) (D d) (E (F f))))"
    assert str(tree.narrow(4)) == str(tree)
    assert len(tree.children) == 4
    with pytest.raises(ValueError, match="at least 2"):
        tree.narrow(1)


def test_empty_elements():
    (tree,) = parse("(S (NP (-NONE- *)) (VP (VB go) (NP (-NONE- *T*-1) (NN on))))")
    assert str(tree.without_empty()) == "(S (VP (VB go) (NP (NN on))))"
    (nothing,) = parse("(S (NP (-NONE- *)))")
    assert nothing.without_empty() is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP We)\n(VP left)", r"a.txt:2: expected '\)' for the tree that begins in line 1"),
        ("(S We) )", r"a.txt:1: expected '\(', got '\)'"),
        ("\nWe left", r"a.txt:2: expected '\(', got 'We'"),
        ("(S (NP We) left)", r"a.txt:1: expected one word or only brackets in \(S"),
        ("(S left (NP We))", r"a.txt:1: expected one word or only brackets in \(S"),
        ("(S We left)", r"a.txt:1: expected one word or only brackets in \(S"),
        ("(S (NP We) ())", r"a.txt:1: expected a label"),
        ("(S (NP))", r"a.txt:1: expected a word or brackets after \(NP"),
        ("((A a) (B b))", r"a.txt:1: expected a label"),
    ],
)
def test_malformed(text, message):
    with pytest.raises(DataError, match=message):
        parse(text)


def test_not_utf8(tmp_path):
    path = tmp_path / "bad.ptb"
    path.write_bytes(b"(S (NP \xff))")
    with pytest.raises(DataError, match=r"bad.ptb:1: expected UTF-8"):
        read_trees(path)


def test_deep_trees():
    depth = 5000
    (tree,) = parse("(X " * depth + "a" + ")" * depth)
    assert len(tree.nodes()) == depth and tree.words() == ["a"]
    assert str(tree.narrow()) == str(tree)


def test_nltk_both_ways():
    nltk = pytest.importorskip("nltk")
    text = "(S (NP (PRP We)) (VP (VBD left)) (. .))"
    tree = Tree.from_nltk(nltk.Tree.fromstring(text))
    assert str(tree) == text
    assert tree.to_nltk() == nltk.Tree.fromstring(text)
    with pytest.raises(ValueError, match="one word or only trees"):
        Tree.from_nltk(nltk.Tree.fromstring("(NP the (NN cat))"))


def test_corpora_of_nltk(monkeypatch):
    corpus, nltk_tree = pytest.importorskip("nltk.corpus"), pytest.importorskip("nltk.tree")

    class Reader:
        def parsed_sents(self):
            texts = "(S (NP (PRP We)) (VP (VBD left) (NP (-NONE- *T*-1))))", "(NP (-NONE- *))"
            return map(nltk_tree.Tree.fromstring, texts)

    monkeypatch.setattr(corpus, "treebank", Reader())
    monkeypatch.setattr(corpus, "conll2000", object())
    assert [str(tree) for tree in load_nltk_trees("treebank")] == ["(S (NP (PRP We)) (VP (VBD left)))"]
    with pytest.raises(DataError, match="'conll2000' has no trees; try 'treebank'"):
        load_nltk_trees("conll2000")
