"""Text for models: readers of files and NLTK corpora, vocabularies, subwords, mini-batches, scores. Does not know the engine."""

from dynet_lite.errors import DataError

from .baselines import MostFrequent, RightBranching, UsualHead, WordForWord
from .batching import minibatches
from .brackets import BracketScore, EvalbScore, base_labels, brackets
from .classified import ClassifiedText, load_nltk_classified, read_classified, read_polarity_of_trees
from .cmudict import load_cmudict
from .columns import (
    LabeledSentence,
    chunks_of_tree,
    load_nltk_chunks,
    parse_columns,
    read_chunks_of_trees,
    read_columns,
    read_labeled,
    spans,
    to_bioes,
    to_iob1,
    to_iob2,
)
from .conllu import (
    Sentence,
    annotated_conllu,
    format_conllu,
    is_conllu,
    iter_conllu,
    parse_conllu,
    read_conllu,
    sentence_of,
)
from .corpora import load_nltk_tagged
from .dependencies import (
    AttachmentScores,
    attachment_scores,
    is_projective,
    is_tree,
    load_nltk_dependencies,
    need_trees,
    projective_heads,
    read_dependencies,
)
from .evidence import NgramEvidence
from .features import WordFeatures, feature_size, shown_words
from .forms import FORMS, Form, form_of, has_brackets, split_tagged
from .lines import numbered_lines, split_words, unpacked
from .ngram_classifier import NgramClassifier
from .ngrams import KneserNey
from .pair_files import pair_source, read_pair_files
from .parallel import Pair, read_pairs, read_parallel, source_tokens, spelled
from .plain import load_nltk_words, read_words, words_source
from .records import Columns, Conllu, Parallel, Plain, Record, Source, Tagged
from .scores import Accuracy, Perplexity, SpanScore
from .sentiment import CLASSES, NEUTRAL, POLARITY, SentimentScore, binary_tree, polarity_of
from .sequence_scores import bleu, edit_distance, error_rate
from .spelled_words import SpelledWords
from .streams import Batches, Stream
from .subwords import BytePairs, char_ngrams
from .tagged import read_tagged, tagged_source
from .trees import Tree, load_nltk_trees, parse_trees, read_trees
from .vectors import WordVectors, read_vectors
from .vocab import Vocab

__all__ = [
    "CLASSES",
    "FORMS",
    "NEUTRAL",
    "POLARITY",
    "Accuracy",
    "AttachmentScores",
    "Batches",
    "BracketScore",
    "BytePairs",
    "ClassifiedText",
    "Columns",
    "Conllu",
    "DataError",
    "EvalbScore",
    "Form",
    "KneserNey",
    "LabeledSentence",
    "MostFrequent",
    "NgramClassifier",
    "NgramEvidence",
    "Pair",
    "Parallel",
    "Perplexity",
    "Plain",
    "Record",
    "RightBranching",
    "Sentence",
    "SentimentScore",
    "Source",
    "SpanScore",
    "SpelledWords",
    "Stream",
    "Tagged",
    "Tree",
    "UsualHead",
    "Vocab",
    "WordFeatures",
    "WordForWord",
    "WordVectors",
    "annotated_conllu",
    "attachment_scores",
    "base_labels",
    "binary_tree",
    "bleu",
    "brackets",
    "char_ngrams",
    "chunks_of_tree",
    "edit_distance",
    "error_rate",
    "feature_size",
    "form_of",
    "format_conllu",
    "has_brackets",
    "is_conllu",
    "is_projective",
    "is_tree",
    "iter_conllu",
    "load_cmudict",
    "load_nltk_chunks",
    "load_nltk_classified",
    "load_nltk_dependencies",
    "load_nltk_tagged",
    "load_nltk_trees",
    "load_nltk_words",
    "minibatches",
    "need_trees",
    "numbered_lines",
    "parse_columns",
    "pair_source",
    "parse_conllu",
    "parse_trees",
    "polarity_of",
    "projective_heads",
    "read_chunks_of_trees",
    "read_classified",
    "read_columns",
    "read_conllu",
    "read_dependencies",
    "read_labeled",
    "read_pair_files",
    "read_pairs",
    "read_parallel",
    "read_polarity_of_trees",
    "read_tagged",
    "read_trees",
    "read_vectors",
    "read_words",
    "sentence_of",
    "shown_words",
    "source_tokens",
    "spans",
    "spelled",
    "split_tagged",
    "split_words",
    "tagged_source",
    "to_bioes",
    "to_iob1",
    "to_iob2",
    "unpacked",
    "words_source",
]
