"""Parts of models that recipes share, written over the public operations. ``import dynet_lite`` does not import them."""

from dynet_lite import told as _told

from . import attention, beam, crf, losses, mst, top_down, top_down_oracle, transformer, transitions, words
from .attention import DotAttention, Memory, MLPAttention, MultiHeadAttention, causal_mask
from .beam import Hypothesis, beam_search, sample
from .biaffine import Biaffine
from .crf import LinearChainCRF, iob_pairs
from .graph import Edge, GraphConvolution
from .letters import LetterCNN, LetterLSTM
from .losses import smoothed_loss
from .mst import best_projective_tree, best_tree, tree_score
from .negative_sampling import NegativeSampling
from .stack_lstm import StackLSTM
from .top_down import CLOSE, Progress, TopDown
from .top_down_oracle import TopDownOracle
from .transformer import LayerNorm, Transformer, TransformerLayer, positions
from .transitions import LEFT, RIGHT, SHIFT, Actions, ArcHybrid, ArcStandard, Configuration, Oracle, TransitionSystem
from .words import CASES, WordReader, case_of

__all__ = [
    "CASES",
    "CLOSE",
    "LEFT",
    "RIGHT",
    "SHIFT",
    "Actions",
    "ArcHybrid",
    "ArcStandard",
    "Biaffine",
    "Configuration",
    "DotAttention",
    "Edge",
    "GraphConvolution",
    "Hypothesis",
    "LayerNorm",
    "LetterCNN",
    "LetterLSTM",
    "LinearChainCRF",
    "MLPAttention",
    "Memory",
    "MultiHeadAttention",
    "NegativeSampling",
    "Oracle",
    "Progress",
    "StackLSTM",
    "TopDown",
    "TopDownOracle",
    "Transformer",
    "TransformerLayer",
    "TransitionSystem",
    "WordReader",
    "beam_search",
    "best_projective_tree",
    "best_tree",
    "case_of",
    "causal_mask",
    "iob_pairs",
    "positions",
    "sample",
    "smoothed_loss",
    "tree_score",
]

globals().update(
    _told.tell(attention, beam, crf, losses, mst, top_down, top_down_oracle, transformer, transitions, words)
)
