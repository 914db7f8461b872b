"""Minibatches: every item once, the same order from the same seed, similar lengths together."""

import random

import pytest

from dynet_lite.text import minibatches

ITEMS = ["x" * n for n in random.Random(1).choices(range(1, 40), k=203)]


@pytest.mark.parametrize("key", [None, len])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("size", [1, 7, 64, 500])
def test_every_item_once(size, seed, key):
    batches = list(minibatches(ITEMS, size, seed=seed, key=key, pool=3))
    assert sorted(item for batch in batches for item in batch) == sorted(ITEMS)
    assert all(0 < len(batch) <= size for batch in batches)
    assert len(batches) == -(-len(ITEMS) // size)


def test_order():
    assert list(minibatches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    one, two = (list(minibatches(range(100), 8, seed=5)) for _ in range(2))
    assert one == two
    assert one != list(minibatches(range(100), 8, seed=6))
    rng = random.Random(5)
    assert list(minibatches(range(100), 8, seed=rng)) == one
    assert list(minibatches(range(100), 8, seed=rng)) != one


def test_buckets():
    def spread(batches):
        return sum(len(max(b, key=len)) - len(min(b, key=len)) for b in batches)

    plain = list(minibatches(ITEMS, 10, seed=2))
    bucketed = list(minibatches(ITEMS, 10, seed=2, key=len))
    assert spread(bucketed) < spread(plain) / 5


def test_nothing_and_wrong_sizes():
    assert list(minibatches([], 3, seed=1)) == []
    for wrong in ({"size": 0}, {"size": 2, "pool": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            minibatches([1], **wrong)
