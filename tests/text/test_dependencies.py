"""Dependency trees: projectivity against its definition, scores against NLTK's scorer, files."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest

from dynet_lite.text import DataError, Sentence, format_conllu, parse_conllu, read_conllu
from dynet_lite.text.dependencies import (
    attachment_scores,
    is_projective,
    is_tree,
    need_trees,
    projective_heads,
)

TREEBANK = Path(__file__).resolve().parents[2] / "data" / "treebank"


def crossing(heads: list[int]) -> bool:
    """Another definition: with the root at 0, two arcs cross."""
    arcs = [(min(a, b), max(a, b)) for a, b in enumerate(heads, 1)]
    return any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2))


def test_trees_and_projective_trees():
    counts = []
    for n in range(1, 6):
        trees = [h for h in itertools.product(range(n + 1), repeat=n) if is_tree(h)]
        assert len(trees) == n ** (n - 1)  # a tree of n nodes with a chosen root (Cayley)
        assert all(is_projective(h) == (not crossing(list(h))) for h in trees)
        counts.append(sum(map(is_projective, trees)))
    assert counts == [1, 2, 7, 30, 143]  # (3n-2)! / ((n-1)! (2n-1)!)


@pytest.mark.parametrize("heads", [[0, 0], [2, 1], [1], [3, 0], [2, 3, 2]])
def test_not_trees(heads):
    assert not is_tree(heads)


def test_projective_heads():
    assert projective_heads([2, 0, 2]) == [2, 0, 2]
    assert projective_heads([3, 4, 0, 3]) == [3, 3, 0, 3]
    for heads in itertools.product(range(6), repeat=5):
        if is_tree(heads):
            lifted = projective_heads(heads)
            assert is_tree(lifted) and is_projective(lifted)
            assert not is_projective(heads) or lifted == list(heads)


def test_the_projects_trees():
    sentences = read_conllu(TREEBANK / "train.conllu")
    need_trees(sentences, "train")
    assert all(is_projective(sentence.heads) for sentence in sentences)
    again = list(parse_conllu(line for sentence in sentences for line in format_conllu(sentence)))
    assert again == sentences


def test_sentences_that_are_no_trees():
    good = Sentence(["a", "b"], ["X", "X"], [], [0, 1], ["root", "dep"])
    need_trees([good], "name")
    with pytest.raises(DataError, match="name: expected a tree with one root in sentence 2: a b"):
        need_trees([good, Sentence(["a", "b"], ["X", "X"], [], [2, 1], ["x", "x"])], "name")
    with pytest.raises(DataError, match="expected tags, heads and relations in sentence 1"):
        need_trees([Sentence(["a"])], "name")


def test_scores_by_hand():
    gold = Sentence(list("abcd"), [], [], [2, 0, 2, 3], ["nsubj", "root", "nsubj:pass", "obj"])
    parse = Sentence(list("abcd"), [], [], [2, 0, 2, 2], ["obj", "root", "nsubj", "obj"])
    score = attachment_scores([gold], [parse])
    assert (score.words, score.heads, score.labeled, score.universal) == (4, 3, 1, 2)
    assert (score.uas, score.las, score.universal_las) == (0.75, 0.25, 0.5)
    with pytest.raises(ValueError, match="expected a parse of 4 words"):
        attachment_scores([gold], [Sentence(["a"], [], [], [0], ["root"])])


@pytest.mark.filterwarnings("ignore:The graph")
def test_scores_agree_with_nltk():
    nltk_parse = pytest.importorskip("nltk.parse")
    rng = random.Random(3)
    gold, parses = [], []
    for sentence in read_conllu(TREEBANK / "dev.conllu"):
        forms = [form if form.isalnum() else "word" for form in sentence.forms]  # NLTK leaves out punctuation
        heads = [h if rng.random() < 0.7 else rng.randint(0, len(forms)) for h in sentence.heads]
        relations = [r if rng.random() < 0.8 else "x" for r in sentence.deprels]
        gold.append(Sentence(forms, sentence.upos, [], sentence.heads, sentence.deprels))
        parses.append(Sentence(forms, sentence.upos, [], heads, relations))

    def graphs(sentences):
        for s in sentences:
            rows = zip(s.forms, s.upos, s.heads, s.deprels, strict=True)
            yield nltk_parse.DependencyGraph("\n".join(f"{w}\t{t}\t{h}\t{r}" for w, t, h, r in rows))

    las, uas = nltk_parse.DependencyEvaluator(list(graphs(parses)), list(graphs(gold))).eval()
    score = attachment_scores(gold, parses)
    assert (score.las, score.uas) == pytest.approx((las, uas))


def random_parse(rng: random.Random, n: int) -> Sentence:
    """A tree with one root over n words, projective or not."""
    order = rng.sample(range(1, n + 1), n)
    heads = {order[0]: 0, **{word: rng.choice(order[:i]) for i, word in enumerate(order) if i}}
    relations = [
        "root" if heads[i] == 0 else rng.choice(["nsubj", "nsubj:pass", "obl", "punct"]) for i in range(1, n + 1)
    ]
    forms = [f"w{i}" for i in range(n)]
    return Sentence(forms, ["NOUN"] * n, [], [heads[i] for i in range(1, n + 1)], relations)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_universal_dependencies_evaluation(seed, tmp_path):
    """The script of the CoNLL 2018 shared task, which udtools carries on."""
    udeval = pytest.importorskip("udtools.udeval")
    rng = random.Random(seed)
    gold = [random_parse(rng, rng.randint(1, 9)) for _ in range(30)]
    guess = [
        random_parse(rng, len(x)) if rng.random() < 0.5 else replace(x, deprels=random_parse(rng, len(x)).deprels)
        for x in gold
    ]
    for x in guess:  # the scorer wants "root" there, and nowhere else
        x.deprels = [
            "root" if not head else relation if relation != "root" else "obl"
            for head, relation in zip(x.heads, x.deprels, strict=True)
        ]
    files = []
    for name, sentences in (("gold", gold), ("guess", guess)):
        files.append(str(tmp_path / f"{name}.conllu"))
        Path(files[-1]).write_text("".join("\n".join(format_conllu(x)) + "\n" for x in sentences), encoding="utf-8")
    theirs = udeval.evaluate(*(udeval.load_conllu_file(file) for file in files))
    ours = attachment_scores(gold, guess)
    assert ours.uas == pytest.approx(theirs["UAS"].f1) and ours.universal_las == pytest.approx(theirs["LAS"].f1)
    assert 0 < ours.las < ours.universal_las < ours.uas < 1
