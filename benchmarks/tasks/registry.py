"""The tasks by name."""

from __future__ import annotations

from types import ModuleType

from tasks import biaffine, parser, rnnlm, rnnlm_hand, seq2seq, tagger, tagger_char, treelstm

TASKS: dict[str, ModuleType] = {
    "tagger": tagger,
    "tagger_char": tagger_char,
    "treelstm": treelstm,
    "parser": parser,
    "rnnlm": rnnlm,
    "rnnlm_hand": rnnlm_hand,
    "seq2seq": seq2seq,
    "biaffine": biaffine,
}
