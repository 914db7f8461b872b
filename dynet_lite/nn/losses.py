"""Losses over scores of labels that are more than one op. Who may import: recipes and programs."""

from __future__ import annotations

from collections.abc import Sequence

import dynet_lite as dy

__all__ = ["smoothed_loss"]


def smoothed_loss(scores: dy.Expression, label: int | Sequence[int], smoothing: float = 0.1) -> dy.Expression:
    """Cross-entropy with label smoothing: the label has probability 1 - smoothing, and all labels share the rest evenly.

    scores: a vector of n unnormalised scores
    label: its number; with a mini-batch of scores, a number for each element

    The result is a number, with a mini-batch one for each element: log sum_j exp(s_j) - (1 - smoothing) s_label -
    smoothing mean(s). ValueError unless 0 <= smoothing < 1. Szegedy et al.: Rethinking the Inception Architecture
    (2016).
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"[smoothed_loss] a smoothing >= 0 and < 1 is needed; got {smoothing}")
    if isinstance(label, Sequence):
        loss, picked = dy.pickneglogsoftmax_batch(scores, label), dy.pick_batch(scores, label)
    else:
        loss, picked = dy.pickneglogsoftmax(scores, label), dy.pick(scores, label)
    return loss + smoothing * (picked - dy.mean_elems(scores)) if smoothing else loss
