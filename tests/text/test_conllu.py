"""The CoNLL-U reader: what it keeps, what it skips, what it refuses. The writer."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from dynet_lite.text import (
    DataError,
    Sentence,
    annotated_conllu,
    format_conllu,
    is_conllu,
    iter_conllu,
    parse_conllu,
    read_conllu,
    sentence_of,
)

GOOD = """\
# sent_id = 1
# text = Don't wake him.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\twake\twake\tVERB\tVB\tMood=Imp\t0\troot\t_\t_
4\thim\the\tPRON\tPRP\tCase=Acc\t3\tobj\t_\tSpaceAfter=No
4.1\tnow\tnow\tADV\t_\t_\t_\t_\t3:advmod\t_
5\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\tRain\train\tNOUN\tNN\t_\t_\t_\t_\t_
"""


def word(ident, head="0", tag="X", form="a", n_columns=10):
    columns = [ident, form, "a", tag, "_", "_", head, "root", "_", "_", "_"]
    return "\t".join(columns[:n_columns])


def test_sentences():
    first, second = parse_conllu(GOOD.split("\n"))
    assert first == Sentence(
        forms=["Do", "n't", "wake", "him", "."],
        lemmas=["do", "not", "wake", "he", "."],
        upos=["AUX", "PART", "VERB", "PRON", "PUNCT"],
        xpos=["VB", "RB", "VB", "PRP", "."],
        heads=[3, 3, 0, 3, 3],
        deprels=["aux", "advmod", "root", "obj", "punct"],
    )
    assert len(first) == 5
    assert second.forms == ["Rain"] and second.heads == [-1]


def test_tags_of_the_language_are_empty_where_no_word_has_one():
    (none,) = parse_conllu([word("1"), word("2", head="1")])
    assert none.xpos == []
    (some,) = parse_conllu([word("1"), word("2", head="1").replace("X\t_", "X\tNN")])
    assert some.xpos == ["_", "NN"]
    assert list(parse_conllu(format_conllu(some))) == [some]


@pytest.mark.parametrize("ending", ["\n", "\n\n", "", "\n\n\n# last\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_endings(tmp_path, ending, newline, bom):
    path = tmp_path / "a.conllu"
    path.write_bytes(bom + (GOOD.rstrip("\n") + ending).replace("\n", newline).encode())
    assert read_conllu(path) == list(parse_conllu(GOOD.split("\n")))
    assert read_conllu(str(path)) == list(iter_conllu(path))


def test_empty(tmp_path):
    path = tmp_path / "empty.conllu"
    path.write_text("")
    assert read_conllu(path) == []


def test_line_separator_inside_a_word(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(word("1", form="a\u2028b\x85c") + "\n", encoding="utf-8")
    assert read_conllu(path)[0].forms == ["a\u2028b\x85c"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (word("2", n_columns=9), "10 columns separated by tabs, got 9"),
        (word("2", n_columns=11), "10 columns separated by tabs, got 11"),
        ("2 a a X _ _ 0 root _ _", "10 columns separated by tabs, got 1"),
        (word("3"), "word number 2, got '3'"),
        (word("1"), "word number 2, got '1'"),
        (word("x"), "word number 2, got 'x'"),
        (word("2-x"), "word number 2, got '2-x'"),
        (word("2", head="x"), "head, got 'x'"),
        (word("2", head="-1"), "head, got '-1'"),
        (word("2", head="\u00b2"), "head"),
        (word("2", tag=""), "no empty column"),
        (word("2", form=""), "no empty column"),
    ],
)
def test_malformed(line, expected):
    lines = ["# one", word("1"), "", "# two", word("1"), line]
    with pytest.raises(DataError, match="f.conllu:6: expected ") as caught:
        list(parse_conllu(lines, "f.conllu"))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_head_outside_the_sentence():
    lines = ["", "# one", word("1", head="2"), word("2", head="3"), ""]
    with pytest.raises(DataError, match=r"f: expected heads from 0 to 2 .* in line 3, got 3 at word 2"):
        list(parse_conllu(lines, "f"))


def test_not_utf8(tmp_path):
    path = tmp_path / "latin.conllu"
    path.write_bytes(f"# caf\n{word('1')}\n".encode() + b"# caf\xe9\n")
    with pytest.raises(DataError, match=r"latin.conllu:3: expected UTF-8"):
        read_conllu(path)


def test_cut_in_the_middle():
    """Wherever a file is cut, the reader gives whole sentences or a DataError, never something else."""
    whole = list(parse_conllu(GOOD.split("\n")))
    for cut in range(len(GOOD)):
        try:
            part = list(parse_conllu(GOOD[:cut].split("\n")))
        except DataError:
            continue
        assert len(part) <= len(whole)
        for sentence, complete in zip(part, whole, strict=False):
            assert sentence.forms == complete.forms[: len(sentence)]


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_conllu(tmp_path / "none.conllu")


def test_universal_dependencies():
    """A real treebank, where one is at hand (DYNET_LITE_CORPORA names the folder that has ud_english_ewt)."""
    default = Path(__file__).resolve().parents[3] / "shared" / "corpora"
    folder = Path(os.environ.get("DYNET_LITE_CORPORA", default)) / "ud_english_ewt"
    path = folder / "en_ewt-ud-dev.conllu"
    if not path.exists():
        pytest.skip("UD English EWT is not at hand; set DYNET_LITE_CORPORA")
    sentences = read_conllu(path)
    assert len(sentences) == 2001
    assert {tag for s in sentences for tag in s.upos} <= set(
        "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
    )
    assert all(s.heads.count(0) == 1 for s in sentences)


TEXT = """# sent_id = 1
# a note
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tE\tF=1\t2\tcase\t2:case\tSpaceAfter=No
2\tle\tle\tDET\tE\t_\t0\troot\t0:root\t_
2.1\tx\t_\t_\t_\t_\t_\t_\t0:root\t_"""


def test_columns_are_written_anew_and_all_else_stays() -> None:
    found = sentence_of(TEXT)
    assert (found.forms, found.upos, found.heads) == (["de", "le"], ["ADP", "DET"], [2, 0])
    assert list(annotated_conllu(TEXT, found)) == [*TEXT.split("\n"), ""]
    lines = list(annotated_conllu(TEXT, replace(found, upos=["X", "Y"], heads=[0, 1], deprels=["root", "det"])))
    assert lines[:3] == TEXT.split("\n")[:3] and lines[5:] == [TEXT.split("\n")[5], ""]
    assert lines[3] == "1\tde\tde\tX\tE\tF=1\t0\troot\t_\tSpaceAfter=No"
    assert lines[4] == "2\tle\tle\tY\tE\t_\t1\tdet\t_\t_"
    plain = "the dog"
    assert list(annotated_conllu(plain, replace(sentence_of(plain), upos=["DET", "NOUN"]))) == [
        "1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_", "2\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_", ""
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TEXT, True), (TEXT.split("\n")[2], True), ("# text = a", None), ("# newdoc", None), ("# 1 thing", False),
        ("1 de", False), ("1\tde", False), ("the dog", False), ("", False), ("\n", False), ("# a = b\nthe dog", False), ("\n" + TEXT, True), (" \r\n1\tde", False),
        ("# text = a\n", None),
    ],
)  # fmt: skip
def test_what_is_conllu(text: str, what: bool | None) -> None:
    assert is_conllu(text) is what


def test_sentences_of_texts() -> None:
    assert sentence_of("# text = a").forms == [] and sentence_of("").forms == []
    assert sentence_of("# 1 thing").forms == ["#", "1", "thing"]
    assert sentence_of("\n" + TEXT).forms == ["de", "le"]
    with pytest.raises(DataError, match="input:2: expected 10 columns"):
        sentence_of(TEXT.split("\n")[4].replace("2\tle", "1\tle", 1) + "\n2\tx")
    with pytest.raises(DataError, match="expected one sentence, got 2"):
        sentence_of("1\ta\t_\tX\t_\t_\t0\tr\t_\t_\n\n" * 2)
