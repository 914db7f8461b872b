"""Relations of trees by a network over the graph: learns, needs the graph, reads and writes CoNLL-U."""

from __future__ import annotations

import pytest

NAME = "graph_relations"
SMALL = ["--word-dim", 20, "--tag-dim", 10, "--hidden", 40, "--learning-rate", 0.01, "--epochs", 4]
TEXT = "1\tThe\tthe\tDET\t_\t_\t2\t_\t_\t_\n2\tdog\tdog\tNOUN\t_\t_\t3\t_\t_\t_\n3\tsleeps\tsleep\tVERB\t_\t_\t0\t_\t_\t_\n\n"


@pytest.mark.parametrize("options", [(), ("--hops", 1, "--no-neighbours")])
def test_batching_changes_nothing(run_recipe, same_losses, options):
    same_losses(run_recipe(NAME, "--smoke", "--compare", *options).stdout)


def test_learns_and_fills_relations_in(run_recipe, tmp_path):
    done = run_recipe(NAME, *SMALL, "--save", tmp_path / "model")
    first, baseline, *_, last = done.stdout.splitlines()
    assert "351 sentences (3,718 words" in first and baseline.startswith(
        "baseline (the most frequent relation of the tags of a word"
    )
    assert float(last.split("relations ")[1].split("%")[0]) > float(baseline.split("relations ")[1].split("%")[0])
    written = run_recipe(NAME, "predict", "--load", tmp_path / "model", "-", stdin=TEXT * 2).stdout
    rows = [line.split("\t") for line in written.splitlines() if line]
    assert [row[7] for row in rows] == ["det", "nsubj", "root"] * 2 and [row[6] for row in rows] == ["2", "3", "0"] * 2


def test_heads_are_needed(run_recipe, tmp_path):
    run_recipe(NAME, "--smoke", "--save", tmp_path / "model")
    done = run_recipe(
        NAME, "predict", "--load", tmp_path / "model", "-", stdin=TEXT.replace("\t3\t_\t_\t_", "\t_\t_\t_\t_"), ok=False
    )
    assert done.returncode == 2 and "expected the head of each word, from 0 to 3: The dog sleeps" in done.stderr


def test_without_the_graph_words_know_their_heads_alone(run_recipe):
    done = run_recipe(NAME, *SMALL, "--hops", 0, "--epochs", 1)
    assert "best dev relations " in done.stdout
