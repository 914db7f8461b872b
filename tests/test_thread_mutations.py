"""The places of tests/thread_mutations.py are still in the source; the mutations themselves are tried by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from thread_mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_place_is_there(name: str) -> None:
    mutation = MUTATIONS[name]
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1
    assert mutation.old != mutation.new and (ROOT / mutation.tests).is_file()
