"""Vectors of words from the vectors of their letters: two LSTMs, or filters over runs of letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dynet_lite as dy
from dynet_lite.needs import many, part

__all__ = ["LetterCNN", "LetterLSTM"]


@part(letters=many("a letter", lambda self: self.forward.input_dim))
class LetterLSTM:
    """The last states of two LSTMs that read a word forwards and backwards: {2 hidden}.

    Ling and others: Finding function in form (2015).
    """

    def __init__(self, model: dy.ParameterCollection, dim: int, hidden: int) -> None:
        """dim: numbers of a letter's vector; hidden: size of each LSTM."""
        self.width = 2 * hidden
        self.forward = dy.LSTMBuilder(1, dim, hidden, model, name="forward")
        self.backward = dy.LSTMBuilder(1, dim, hidden, model, name="backward")

    def __call__(self, letters: Sequence[dy.Expression]) -> dy.Expression:
        """{width} from the vectors {dim} of the letters, of which there is at least one."""
        there = self.forward.initial_state().transduce(letters)[-1]
        back = self.backward.initial_state().transduce(letters[::-1])[-1]
        return dy.concatenate([there, back])

    def symbolic(self, letters: Any) -> Any:
        """The same for the words of an exported network: from a sequence of sequences to a sequence."""
        there: Any = self.forward.initial_state().transduce(letters)[-1]
        return there.joined(self.backward.initial_state().transduce(letters[::-1])[-1])


@part(letters=many("a letter", "dim"))
class LetterCNN:
    """The strongest response of each filter anywhere in a word, {filters}: rectify(max over runs of `window` letters of
    W run + b).

    There is a run around each letter, with zeros beyond the ends of the word. dos Santos and Zadrozny: Learning
    character-level representations for part-of-speech tagging (2014). Ma and Hovy: End-to-end sequence labeling via
    bi-directional LSTM-CNNs-CRF (2016).
    """

    def __init__(self, model: dy.ParameterCollection, dim: int, filters: int, window: int = 3) -> None:
        """dim: numbers of a letter's vector. ValueError unless window is odd."""
        if window < 1 or window % 2 == 0:
            raise ValueError(f"[LetterCNN] window must be odd; got {window}")
        self.width, self.dim = filters, dim
        # one matrix per place
        self.filters = [model.add_parameters((filters, dim), init="fan-in", name=f"filters{k}") for k in range(window)]
        self.bias = model.add_parameters(filters, init=0, name="biases")

    def __call__(self, letters: Sequence[dy.Expression]) -> dy.Expression:
        """{width} from the vectors {dim} of the letters, of which there is at least one."""
        beyond = [dy.zeros(self.dim)] * (len(self.filters) // 2)
        row = [*beyond, *letters, *beyond]
        found = []
        for i in range(len(letters)):
            pairs = zip(self.filters, row[i : i + len(self.filters)], strict=True)
            found.append(dy.affine_transform([self.bias, *(item for pair in pairs for item in pair)]))
        return dy.rectify(dy.emax(found))

    def symbolic(self, letters: Any) -> Any:
        """The same for the words of an exported network: from a sequence of sequences to a sequence."""
        return letters.strongest(self.filters, self.bias).map(dy.rectify)
