"""NLTK corpora: a small one made here, and the messages when there is none."""

import subprocess
import sys

import pytest

from dynet_lite.text import DataError, Sentence, load_nltk_tagged, load_nltk_words

nltk = pytest.importorskip("nltk")

TREES = """
( (S (NP-SBJ (DT The) (NN rain)) (VP (VBD stopped) (NP (-NONE- *T*-1))) (. .)) )
( (NP (-NONE- *)) )
( (S (NP-SBJ (PRP We)) (VP (VBD left)) (. .)) )
"""


@pytest.fixture
def no_corpora(monkeypatch):
    import nltk.corpus

    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    # A corpus once found stays loaded; take a fresh loader that looks in the roots of this test.
    loader = nltk.corpus.LazyCorpusLoader
    fresh = loader("treebank/combined", nltk.corpus.BracketParseCorpusReader, r"wsj_.*\.mrg", tagset="wsj")
    monkeypatch.setattr(nltk.corpus, "treebank", fresh)


@pytest.mark.parametrize("relative", [False, True])
def test_tagged_sentences(no_corpora, monkeypatch, tmp_path, relative):
    folder = tmp_path / "nltk_data" / "corpora" / "treebank" / "combined"
    folder.mkdir(parents=True)
    (folder / "wsj_0001.mrg").write_text(TREES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLTK_DATA", "nltk_data" if relative else str(tmp_path / "nltk_data"))
    assert load_nltk_tagged("treebank") == [
        Sentence(["The", "rain", "stopped", "."], ["DT", "NN", "VBD", "."]),
        Sentence(["We", "left", "."], ["PRP", "VBD", "."]),
    ]


def test_not_installed(no_corpora):
    with pytest.raises(DataError, match=r"'treebank' is not installed; get it with .*NLTK_DATA") as caught:
        load_nltk_tagged("treebank")
    assert "\n" not in str(caught.value)


def test_what_a_corpus_needs_is_named(no_corpora, monkeypatch, tmp_path):
    """Texts that are not cut into sentences are there, but not the model that cuts them."""
    import nltk.corpus

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    (tmp_path / "a.txt").write_text("We left. It rained.")
    reader = nltk.corpus.PlaintextCorpusReader(str(tmp_path), ".*", sent_tokenizer=Cutter())
    monkeypatch.setattr(nltk.corpus, "gutenberg", reader)
    with pytest.raises(DataError, match=r"'gutenberg' needs 'punkt_tab', which is not .* nltk\.downloader punkt_tab'$"):
        load_nltk_words("gutenberg")


class Cutter:
    """As NLTK's own where its model is missing."""

    def tokenize(self, text):
        return nltk.data.find("tokenizers/punkt_tab/english/")


def test_no_such_corpus():
    with pytest.raises(DataError, match="no corpus named 'nothing'"):
        load_nltk_tagged("nothing")


def test_import_is_light():
    """text/ brings in neither the engine's compiled module by itself nor NLTK."""
    code = (
        "import sys, importlib.machinery, types\n"
        "package = types.ModuleType('dynet_lite'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['dynet_lite'] = package\n"
        "import dynet_lite.text\n"
        "assert not {'nltk', 'numpy', 'dynet_lite._core'} & set(sys.modules)\n"
    )
    import dynet_lite.text

    package = str(next(iter(dynet_lite.text.__path__)) + "/..")
    subprocess.run([sys.executable, "-c", code, package], check=True, timeout=60)
