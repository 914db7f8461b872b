"""Text for models: CoNLL-U files, NLTK corpora, vocabularies, minibatches. Does not know the engine."""

from dynet_lite.errors import DataError

from .batching import minibatches
from .conllu import Sentence, iter_conllu, parse_conllu, read_conllu
from .corpora import load_nltk_tagged
from .dependencies import (
    AttachmentScores,
    attachment_scores,
    format_conllu,
    is_projective,
    is_tree,
    load_nltk_dependencies,
    need_trees,
    projective_heads,
)
from .trees import Tree, load_nltk_trees, parse_trees, read_trees
from .vocab import Vocab

__all__ = [
    "AttachmentScores",
    "DataError",
    "Sentence",
    "Tree",
    "Vocab",
    "attachment_scores",
    "format_conllu",
    "is_projective",
    "is_tree",
    "iter_conllu",
    "load_nltk_dependencies",
    "load_nltk_tagged",
    "load_nltk_trees",
    "minibatches",
    "need_trees",
    "parse_conllu",
    "parse_trees",
    "projective_heads",
    "read_conllu",
    "read_trees",
]
