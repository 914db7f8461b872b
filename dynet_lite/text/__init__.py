"""Text for models: CoNLL-U files, NLTK corpora, vocabularies, minibatches. Does not know the engine."""

from dynet_lite.errors import DataError

from .batching import minibatches
from .conllu import Sentence, iter_conllu, parse_conllu, read_conllu
from .corpora import load_nltk_tagged
from .vocab import Vocab

__all__ = [
    "DataError",
    "Sentence",
    "Vocab",
    "iter_conllu",
    "load_nltk_tagged",
    "minibatches",
    "parse_conllu",
    "read_conllu",
]
