"""Files are told apart by what they hold, and words are split at the separators of their form only. Each form packed, too."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest

from dynet_lite.text import (
    BytePairs,
    DataError,
    Plain,
    Stream,
    form_of,
    has_brackets,
    numbered_lines,
    read_classified,
    read_columns,
    read_conllu,
    read_dependencies,
    read_labeled,
    read_pair_files,
    read_pairs,
    read_tagged,
    read_trees,
    read_vectors,
    read_words,
    source_tokens,
    spelled,
    split_words,
    tagged_source,
)

HALF = "8\u00a01\\/2"  # as in sentiment treebanks: a fraction with a no-break space
WORDS = [["The", HALF, "dogs"], ["bark", "a/b"]]
TAGS = [["DET", "NUM", "NOUN"], ["VERB", "SYM"]]


def joined(mark: str) -> str:
    return "".join(" ".join(map(mark.join, zip(w, t, strict=True))) + "\n" for w, t in zip(WORDS, TAGS, strict=True))


def columns(mark: str, *more: str, repeat: int = 1) -> str:
    return repeat * "".join(
        "".join(mark.join([w, t, *more]) + "\n" for w, t in zip(words, tags, strict=True)) + "\n"
        for words, tags in zip(WORDS, TAGS, strict=True)
    )


CONLLU = "".join(
    "".join(
        f"{i}\t{w}\t_\t{t}\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, (w, t) in enumerate(zip(words, tags, strict=True), 1)
    )
    + "\n"
    for words, tags in zip(WORDS, TAGS, strict=True)
)
TREES = f"( (S (DET The)\n (NP (NUM {HALF}) (NOUN dogs)) (-NONE- *)) )\n(S (VERB bark) (SYM a/b))\n"


@pytest.fixture(params=["plain", "packed"])
def write(request, tmp_path):
    """write(text): a file with a name that says nothing, packed or not."""

    def made(text: str):
        path = tmp_path / "file"
        path.write_bytes(gzip.compress(text.encode()) if request.param == "packed" else text.encode())
        return path

    return made


@pytest.mark.parametrize(
    "text",
    [joined("_"), joined("|"), columns("\t"), columns(" "), "# id = 1\n" + columns("\t"), CONLLU, TREES,
     columns(" ", "B-NP"), columns("\t", "0"), columns("\t", "0", "root")],
)  # fmt: skip
def test_tagged(write, text):
    found = read_tagged(write(text))
    assert [x.forms for x in found] == WORDS
    assert [x.upos for x in found] == TAGS


def test_conllu_without_universal_tags(write):
    """The mark for nothing is no tag to learn."""
    rows = "1\tthe\t_\t_\tDT\t_\t2\tdet\t_\t_\n2\tdog\t_\t{}\tNN\t_\t0\troot\t_\t_\n\n"
    with pytest.raises(DataError, match="expected tags in the column UPOS, which is empty"):
        read_tagged(write(rows.format("_") * 3))
    with pytest.raises(DataError, match="which is empty in the first 3 sentences"):
        tagged_source(write(rows.format("_") * 3))
    path = write(rows.format("_") + rows.format("NOUN"))
    assert [x.upos for x in read_tagged(path)] == [["_", "_"], ["_", "NOUN"]]
    assert list(Stream([path], tagged_source(path), batch=2)) == read_tagged(path)


def test_tagged_with_slashes_and_what_is_wrong(write):
    assert read_tagged(write("The/DT dogs/NNS\nand/or/CC it/PRP\n"))[1].forms == ["and/or", "it"]
    text = columns("\t", "x", "y")
    with pytest.raises(DataError, match=r"4 columns; say which one has the tag with --column"):
        read_tagged(write(text))
    assert [x.upos for x in read_tagged(write(text), column=-3)] == TAGS
    with pytest.raises(DataError, match=r"file:2: expected WORD_TAG, got 'bark'"):
        read_tagged(write("The_DET dogs_NOUN\nbark\n"), form="word_tag")
    with pytest.raises(DataError, match=r"expected one mark .* got _ and \| in all words; say --form 'word_tag' or"):
        read_tagged(write("a_b|c d_e|f\n"))
    assert read_tagged(write("a_b|c d_e|f\n"), form="word|tag")[0].forms == ["a_b", "d_e"]
    with pytest.raises(DataError, match="expected CoNLL-U, columns"):
        read_tagged(write("We left .\nWhy did we go ?\n"))
    assert read_tagged(write("")) == read_tagged(write("\n \n")) == []
    with pytest.raises(ValueError, match="as form"):
        read_tagged(write(text), form="x")


@pytest.mark.parametrize(
    "text",
    ["".join(" ".join(words) + "\n" for words in WORDS), CONLLU, TREES, columns("\t"), columns(" ", "B-NP")],
)
def test_words_never_come_with_markup(write, text):
    assert read_words(write(text)) == WORDS


def test_words_of_tagged_text_and_what_is_ambiguous(write):
    assert read_words(write(8 * joined("_"))) == 8 * WORDS
    assert read_words(write("and/or what\n")) == [["and/or", "what"]]
    assert read_words(write("a_b\n")) == [["a_b"]]  # too little to be sure: text
    assert read_words(write("( laughter ) yes\n(no)\n")) == [["(", "laughter", ")", "yes"], ["(no)"]]
    for text in (
        columns(" ", repeat=3),
        "a\tb\nc\td\n",
        "good ||| a film\nbad ||| no film\n",
        "good\ta film\nbad\tno film\n",
    ):
        with pytest.raises(DataError, match="say --form text or --form columns"):
            read_words(write(text))
        assert read_words(write(text), form="text")[0][0] == text.split()[0]
    assert read_words(write(columns(" ", repeat=3)), form="columns") == 3 * WORDS
    with pytest.raises(DataError, match="10 columns separated by tabs"):
        read_words(write("1 Dogs dog NOUN _ _ 2 nsubj _ _\n2 bark bark VERB _ _ 0 root _ _\n"))
    with pytest.raises(DataError, match="expected '\\)'"):
        read_words(write("(S (NP (DET The)\n"))


@pytest.mark.parametrize(
    "text",
    ["a|O 8\u00a02|B-X\nb|I-X\n", "a\tO\n8\u00a02\tB-X\n\nb\tB-X\n", "a DT O\n8\u00a02 NN B-X\n\nb NN I-X\n", "a _ _ O\n8\u00a02 _ _ B-X\n\nb _ _ S-X\n"],
)  # fmt: skip
def test_labeled(write, text):
    found = read_labeled(write(text))
    assert [x.forms for x in found] == [["a", "8\u00a02"], ["b"]]
    assert [x.labels for x in found] == [["O", "B-X"], ["B-X"]]


def test_labeled_trees_and_errors(write):
    assert read_labeled(write(TREES))[0].forms == WORDS[0]
    with pytest.raises(DataError, match=r"file:2: expected O, B-TYPE or I-TYPE after each \|, got 'NN'"):
        read_labeled(write("a|O b|O\nc|NN\n"))


@pytest.mark.parametrize("text", ["pos\tgood 8\u00a02\nneg\tbad\n", "good 8\u00a02\tpos\nbad\tneg\nnot\tneg\n",
                                  "pos ||| good 8\u00a02\nneg ||| bad\twhat\n", "__label__pos good 8\u00a02\n__label__neg bad\n",
                                  "__label__pos\tgood 8\u00a02\n__label__neg\tbad\n"])  # fmt: skip
def test_classified(write, text):
    found = read_classified(write(text))
    assert (found[0].label, found[0].words, found[1].label) == ("pos", ["good", "8\u00a02"], "neg")


def test_pairs(write, tmp_path):
    for text in ("a 8\u00a02\tB\n\nc\tD\n", "a 8\u00a02 ||| B\nc ||| D\n"):
        found = read_pairs(write(text))
        assert [(x.source, x.target) for x in found] == [(["a", "8\u00a02"], ["B"]), (["c"], ["D"])]
    path = write("ab c\tD e\n")
    assert [(x.source, x.target) for x in read_pair_files([str(path)], letters=True)] == [
        (["a", "b", "<sp>", "c"], ["D", "<sp>", "e"])
    ]
    assert spelled(["D", "<sp>", "e"]) == "D e"
    (tmp_path / "a").write_text("ab c\n")
    (tmp_path / "b").write_text("d\n")
    assert read_pair_files([str(tmp_path / "a"), str(tmp_path / "b")], letters=True)[0].source == [
        "a",
        "b",
        "<sp>",
        "c",
    ]


@pytest.mark.parametrize(
    "text",
    ["walk\twalked\tV;PST\ngo\twent\tV;PST\n", "walk\tV;PST\twalked\ngo\tV;PST\twent\n",
     "walk\twalked\tTense=Past|Mood=Ind\ngo\twent\tTense=Past\n"],
)  # fmt: skip
def test_inflections(write, text):
    first, second = read_pairs(write(text), letters=True)
    assert "".join(first.source[:4]) == "walk" and len(first.source) == 6
    assert first.target == list("walked") and second.target == list("went")
    assert read_pairs(write(text))[0].source[0] == "walk"
    assert source_tokens("walk\tV;PST", True) == ["w", "a", "l", "k", "V", "PST"]


def test_what_three_columns_do_not_say(write):
    for text, what in (("a\tb\tc\n", "none look like features"), ("a\tB\tC\n", "the last two look")):
        with pytest.raises(DataError, match=what):
            read_pairs(write(text))
    with pytest.raises(DataError, match=r"file:2: expected three columns"):
        read_pairs(write("a\tb\tN;PL\nc\td\n"))


def test_dependencies_in_columns(write):
    found = read_dependencies(write("Dogs\tNNS\t2\tnsubj\nbark\tVBP\t0\troot\n\nGo\tVB\t0\troot\n"))
    assert [(x.forms, x.upos, x.heads, x.deprels) for x in found] == [
        (["Dogs", "bark"], ["NNS", "VBP"], [2, 0], ["nsubj", "root"]), (["Go"], ["VB"], [0], ["root"]),
    ]  # fmt: skip
    assert read_dependencies(write("Dogs NNS 2\nbark VBP 0\n"))[0].deprels == ["dep", "root"]
    with pytest.raises(DataError, match="file:1: expected a number from 0 to 1 as head, got '2'"):
        read_dependencies(write("Dogs\tNNS\t2\tx\n"))
    assert read_conllu(write(CONLLU))[0].forms == WORDS[0]


def test_no_break_spaces_stay_in_words(write):
    assert split_words(f" a\t{HALF}  b\u3000c\x0b\u2028d\r\n") == ["a", HALF, "b\u3000c", "\u2028d"]
    assert read_trees(write(f"(3 (2 {HALF}) (2 b))\n"))[0].words() == [HALF, "b"]
    pieces = BytePairs.learn([HALF, HALF], 3)
    assert BytePairs.join(pieces.split_all([HALF, "b"])) == [HALF, "b"]


def test_a_cut_packed_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(re.sub("x", "y", CONLLU * 50).encode())[:-30])
    with pytest.raises(DataError, match=r"a\.gz: expected a whole file packed by gzip"):
        read_words(path)


def test_kinds(write):
    for text, kind in ((joined("_"), "tagged"), (columns("\t"), "columns"), (CONLLU, "conllu"), (TREES, "trees"), ("a b\n", "text"),
                       (CONLLU.replace("\t", " "), "conllu"), ("1 In the beginning there was only a word\n", "text"),
                       ("1\tIn the beginning there was only a word\n", "table"),
                       ("", "text"), ("a\tb c\nd\te f\n", "table")):  # fmt: skip
        assert form_of(write(text)).kind == kind


def test_false_is_not_standard_input():
    for read in (form_of, has_brackets, lambda path: list(numbered_lines(path))):
        with pytest.raises(TypeError, match="bool"):
            read(False)


def test_tagged_text_with_something_else_in_it(write):
    """As the Penn Treebank's .pos files: no language model trains on the tags, and a tagger says what is in its way."""
    path = write("[ The/DT dogs/NNS ]\nbark/VBP\n" * 9)
    with pytest.raises(DataError, match="say --form text or --form 'word/tag'"):
        read_words(path)
    with pytest.raises(DataError, match=r"file:1: expected WORD/TAG, got '\['"):
        read_tagged(path)
    assert form_of(write("either/or is what we/they say and do not/never mean to say\n")).kind == "text"


@pytest.mark.parametrize("comment", ["# text = Take the U-Bahn.", "# title = Plan B-52", "# text = Vitamin O"])
def test_comments_that_end_like_the_label_of_a_span(write, comment):
    path = write("".join(f"# sent_id = {i}\n{comment}\n1\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n" for i in range(3)))
    assert form_of(path).kind == "conllu"
    assert read_words(path) == [["dog"]] * 3
    assert [sentence.upos for sentence in read_tagged(path)] == [["NOUN"]] * 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_what_is_read_twice_is_no_pipe(tmp_path):
    """The first look would take its beginning, and the words of that would be missing without a word."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for read in (read_words, read_tagged, has_brackets, read_dependencies, read_labeled, read_vectors,
                 lambda path: read_pair_files([path]), lambda path: Stream([path], Plain(), batch=2)):  # fmt: skip
        with pytest.raises(DataError, match="pipe: expected a file, since it is read more than once; got a pipe"):
            read(pipe)


@pytest.mark.parametrize("text", ["a B-X\rb I-X\r\rc O\r", "a B-X\rb I-X", "\ra O\r"])
def test_lines_that_end_with_carriage_returns_alone(tmp_path: Path, text: str) -> None:
    """They were one row of many columns: its first word, its last label."""
    path = tmp_path / "old"
    for data in (text.encode(), gzip.compress(text.encode())):
        path.write_bytes(data)
        for read in (read_columns, read_labeled, read_classified, read_conllu, read_trees):
            with pytest.raises(DataError, match="old: expected lines that end with a line feed"):
                read(path)
    for data in (b"a B-X\r\nb\rI-X\r\n", b"a B-X\r", b"a B-X\r\r\n"):
        path.write_bytes(data)
        assert read_columns(path)[0].forms[0] == "a"
