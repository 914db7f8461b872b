"""Parts of models that recipes share, written over the public operations. ``import dynet_lite`` does not import them."""

from .mst import best_projective_tree, best_tree, tree_score
from .transitions import Actions, ArcHybrid, ArcStandard, Configuration, Oracle, TransitionSystem

__all__ = [
    "Actions",
    "ArcHybrid",
    "ArcStandard",
    "Configuration",
    "Oracle",
    "TransitionSystem",
    "best_projective_tree",
    "best_tree",
    "tree_score",
]
