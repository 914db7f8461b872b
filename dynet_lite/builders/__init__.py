"""Recurrent builders: networks over sequences and trees, with DyNet's names and parameters."""

from dynet_lite import told as _told
from dynet_lite._core import RNNState, TreeNode
from dynet_lite.builders import lstm_gates
from dynet_lite.builders.birnn import BiRNNBuilder
from dynet_lite.builders.compact_lstm import CompactVanillaLSTMBuilder
from dynet_lite.builders.coupled_lstm import CoupledLSTMBuilder, FastLSTMBuilder
from dynet_lite.builders.gru import GRUBuilder
from dynet_lite.builders.lstm_gates import (
    vanilla_lstm_gates,
    vanilla_lstm_gates_concat,
    vanilla_lstm_gates_dropout,
    vanilla_lstm_gates_dropout_concat,
)
from dynet_lite.builders.simple_rnn import SimpleRNNBuilder
from dynet_lite.builders.sparse_lstm import SparseLSTMBuilder
from dynet_lite.builders.stacked import StackedRNNState
from dynet_lite.builders.tree_lstm import (
    BidirectionalTreeLSTMBuilder,
    ChildSumTreeLSTMBuilder,
    NaryTreeLSTMBuilder,
    UnidirectionalTreeLSTMBuilder,
)
from dynet_lite.builders.vanilla_lstm import LSTMBuilder, VanillaLSTMBuilder

__all__ = [
    "BiRNNBuilder",
    "BidirectionalTreeLSTMBuilder",
    "ChildSumTreeLSTMBuilder",
    "CompactVanillaLSTMBuilder",
    "CoupledLSTMBuilder",
    "FastLSTMBuilder",
    "GRUBuilder",
    "LSTMBuilder",
    "NaryTreeLSTMBuilder",
    "RNNState",
    "SimpleRNNBuilder",
    "SparseLSTMBuilder",
    "StackedRNNState",
    "TreeNode",
    "UnidirectionalTreeLSTMBuilder",
    "VanillaLSTMBuilder",
    "vanilla_lstm_gates",
    "vanilla_lstm_gates_concat",
    "vanilla_lstm_gates_dropout",
    "vanilla_lstm_gates_dropout_concat",
]

globals().update(_told.tell(lstm_gates))
