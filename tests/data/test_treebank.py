"""Checks on the mini-treebank in data/treebank: form, agreement of the three formats, and the generator."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREEBANK = ROOT / "data" / "treebank"
PARTS = ("train", "dev")
FILES = [f"{part}.{ending}" for part in PARTS for ending in ("conllu", "ptb", "sst")]


def word_set(text):
    """The set of the words in ``text``."""
    return set(text.split())


UPOS = word_set("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X")
# The universal relations, and the English subtypes that the treebank uses.
DEPREL = word_set(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated "
    "expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum "
    "root vocative xcomp"
)
SUBTYPES = {
    "acl:relcl", "aux:pass", "cc:preconj", "compound:prt", "csubj:pass", "det:predet", "nmod:poss",
    "nsubj:pass", "obl:agent", "obl:npmod", "obl:tmod",
}  # fmt: skip
PHRASES = word_set("S SQ SBARQ SINV SBAR FRAG NP NML VP PP ADJP ADVP QP PRT INTJ WHNP WHADVP WHADJP WHPP")


def read_conllu(path):
    """Return a list of (comments, rows); a row is the list of its columns."""
    sentences = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if block.strip():
            lines = block.split("\n")
            comments = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("#"))
            sentences.append((comments, [line.split("\t") for line in lines if not line.startswith("#")]))
    return sentences


def read_tree(line):
    """Parse one bracketed tree into [label, child, ...]; a leaf is a string."""
    tokens = re.findall(r"[()]|[^()\s]+", line)
    stack, done = [], []
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            node = stack.pop()  # an IndexError here means that a bracket is closed too early
            (stack[-1] if stack else done).append(node)
        else:
            stack[-1].append(token)
    assert not stack, "bracket left open"
    assert len(done) == 1, "more than one tree on a line"
    return done[0]


def nodes(tree):
    yield tree
    for child in tree[1:]:
        if isinstance(child, list):
            yield from nodes(child)


def leaves(tree):
    """The (label, form) pairs of the preterminals."""
    return [(node[0], node[1]) for node in nodes(tree) if len(node) == 2 and isinstance(node[1], str)]


@pytest.fixture(scope="module")
def conllu():
    return {part: read_conllu(TREEBANK / f"{part}.conllu") for part in PARTS}


@pytest.fixture(scope="module")
def trees():
    result = {}
    for part in PARTS:
        for ending in ("ptb", "sst"):
            text = (TREEBANK / f"{part}.{ending}").read_text(encoding="utf-8")
            result[part, ending] = [read_tree(line) for line in text.splitlines()]
    return result


def all_sentences(conllu):
    return [sentence for part in PARTS for sentence in conllu[part]]


def test_counts(conllu):
    train, dev = len(conllu["train"]), len(conllu["dev"])
    assert train + dev >= 300
    assert 0.12 <= dev / (train + dev) <= 0.18
    lengths = [len(rows) for _, rows in all_sentences(conllu)]
    assert min(lengths) >= 3 and max(lengths) <= 25
    assert 9 <= sum(lengths) / len(lengths) <= 13


def test_every_domain_is_in_both_parts(conllu):
    domains = {part: {c["sent_id"].rpartition("-")[0] for c, _ in conllu[part]} for part in PARTS}
    assert domains["train"] == domains["dev"]


def test_columns_and_ids(conllu):
    for comments, rows in all_sentences(conllu):
        assert set(comments) == {"sent_id", "text"}
        assert [row[0] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]
        for row in rows:
            assert len(row) == 10, comments
            assert all(row), comments
            assert not any(re.search(r"\s", column) for column in row), comments
            assert row[4] == row[5] == row[8] == "_"
            assert row[9] in ("_", "SpaceAfter=No")


def test_tags_and_relations(conllu):
    for comments, rows in all_sentences(conllu):
        for row in rows:
            assert row[3] in UPOS, (comments, row)
            assert row[7] in DEPREL | SUBTYPES, (comments, row)
            assert (row[3] == "PUNCT") == (row[7] == "punct"), (comments, row)


def test_dependency_trees(conllu):
    for comments, rows in all_sentences(conllu):
        heads = [0] + [int(row[6]) for row in rows]
        assert all(0 <= head <= len(rows) for head in heads)
        assert [row[7] for row in rows if row[6] == "0"] == ["root"], comments
        assert sum(row[7] == "root" for row in rows) == 1, comments
        for start in range(1, len(rows) + 1):  # every word leads up to the root
            seen, word = set(), start
            while word:
                assert word not in seen, comments
                seen.add(word)
                word = heads[word]


def test_projective(conllu):
    for comments, rows in all_sentences(conllu):
        arcs = [sorted((int(row[0]), int(row[6]))) for row in rows if row[6] != "0"]
        root = next(int(row[0]) for row in rows if row[6] == "0")
        for low, high in arcs:
            assert not low < root < high, comments
            for other_low, other_high in arcs:
                assert not low < other_low < high < other_high, comments


def test_function_words_have_no_odd_children(conllu):
    """Words that UD treats as leaves: only a few relations may hang from them."""
    leaf = {"case", "mark", "aux", "aux:pass", "cop", "cc", "punct"}
    for comments, rows in all_sentences(conllu):
        for row in rows:
            if row[6] != "0" and rows[int(row[6]) - 1][7] in leaf:
                assert row[7] in {"fixed", "conj", "cc"}, (comments, row)


def test_relations_fit_tags(conllu):
    expected = {
        "case": {"ADP", "PART"},
        "mark": {"SCONJ", "PART"},
        "aux": {"AUX"},
        "aux:pass": {"AUX"},
        "cop": {"AUX"},
        "cc": {"CCONJ"},
        "det": {"DET"},
        "nummod": {"NUM"},
        "amod": {"ADJ"},
        "discourse": {"INTJ", "NOUN"},
        "compound:prt": {"ADP"},
    }
    for comments, rows in all_sentences(conllu):
        for row in rows:
            assert row[3] in expected.get(row[7], UPOS), (comments, row)


def test_at_most_one_subject_and_object(conllu):
    for comments, rows in all_sentences(conllu):
        for wanted in ({"nsubj", "nsubj:pass", "csubj", "csubj:pass"}, {"obj"}, {"iobj"}):
            heads = [row[6] for row in rows if row[7] in wanted]
            assert len(heads) == len(set(heads)), comments


def test_text_is_the_joined_forms(conllu):
    for comments, rows in all_sentences(conllu):
        text = "".join(row[1] + ("" if row[9] == "SpaceAfter=No" else " ") for row in rows)
        assert text.strip() == comments["text"]
        assert comments["text"][0] in '"' or comments["text"][0].isupper(), comments


def test_no_duplicates_and_disjoint_parts(conllu):
    texts = [comments["text"].lower() for comments, _ in all_sentences(conllu)]
    assert len(texts) == len(set(texts))
    names = [comments["sent_id"] for comments, _ in all_sentences(conllu)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("part", PARTS)
def test_formats_agree(conllu, trees, part):
    assert len(conllu[part]) == len(trees[part, "ptb"]) == len(trees[part, "sst"])
    together = zip(conllu[part], trees[part, "ptb"], trees[part, "sst"], strict=True)
    for (comments, rows), ptb, sst in together:
        assert leaves(ptb) == [(row[3], row[1]) for row in rows], comments
        assert [form for _, form in leaves(sst)] == [row[1] for row in rows], comments


@pytest.mark.parametrize("part", PARTS)
def test_ptb_trees(trees, part):
    for tree in trees[part, "ptb"]:
        for node in nodes(tree):
            assert len(node) > 1
            if isinstance(node[1], str):
                assert len(node) == 2 and node[0] in UPOS
            else:
                assert node[0] in PHRASES
                assert all(isinstance(child, list) for child in node[1:])


@pytest.mark.parametrize("part", PARTS)
def test_sst_trees(trees, part):
    for tree in trees[part, "sst"]:
        for node in nodes(tree):
            assert node[0] in set("01234")
            if isinstance(node[1], str):
                assert len(node) == 2
            else:
                assert len(node) == 3
                assert isinstance(node[2], list)


def test_every_sentiment_class_occurs_at_the_root(trees):
    for part in PARTS:
        roots = [tree[0] for tree in trees[part, "sst"]]
        assert set(roots) == set("01234")


@pytest.mark.parametrize("name", FILES)
def test_file_endings(name):
    data = (TREEBANK / name).read_bytes()
    assert b"\r" not in data
    assert data.endswith(b"\n\n" if name.endswith("conllu") else b"\n")


def test_generator_reproduces_the_files(tmp_path):
    subprocess.run([sys.executable, "-B", str(TREEBANK / "build.py"), "--out", str(tmp_path)], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (TREEBANK / name).read_bytes(), name


def test_generator_check_option():
    subprocess.run([sys.executable, "-B", str(TREEBANK / "build.py"), "--check"], check=True)


def test_readme_shows_the_counts():
    command = [sys.executable, "-B", str(TREEBANK / "build.py"), "--counts"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert shown in (TREEBANK / "README.md").read_text(encoding="utf-8")


def test_generator_of_names_reproduces_the_files(tmp_path):
    subprocess.run([sys.executable, "-B", str(TREEBANK / "names.py"), "--out", str(tmp_path)], check=True)
    for part in PARTS:
        assert (tmp_path / f"{part}.iob").read_bytes() == (TREEBANK / f"{part}.iob").read_bytes()


def test_half_of_the_names_in_dev_are_new():
    words = {
        part: {line.split()[0] for line in (TREEBANK / f"{part}.iob").read_text("utf-8").splitlines() if "-" in line}
        for part in PARTS
    }
    new = words["dev"] - words["train"]
    assert 0.3 < len(new) / len(words["dev"]) < 0.6
