#!/usr/bin/env python
"""Training speed of a BiLSTM tagger: DyNet against dynet_lite, autobatching on and off, one program text.

    python benchmarks/tagger.py                          # every engine that is installed
    python benchmarks/tagger.py --engines dynet:1,dynet_lite:on,dynet_lite:on:2 --rounds 9
    python benchmarks/tagger.py --conllu train.conllu    # real sentences instead of made-up ones

Words of 128 numbers, an LSTM of 50 in each direction, a hidden layer of 32, 45 tags, 64 sentences per update,
Adam with sparse updates and no clipping. All engines start from the same weights and see the same
minibatches; their losses must agree to 1e-5 relative before a speed is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from side_by_side import Engine, machine, median, run_rounds, serve, table

Sentence = tuple[list[int], list[int]]  # word ids, tag ids

PHASES = ("build", "forward", "backward", "update")
SIZES = {"words": 20_000, "emb": 128, "hidden": 50, "mlp": 32, "tags": 45, "batch": 64}
TOLERANCE = 1e-5

# --- data ---------------------------------------------------------------------------------------------------


def made_up_sentences(count: int, sizes: dict[str, int], seed: int = 7) -> list[Sentence]:
    """Sentences with the lengths (mean about 23) and the word frequencies (Zipf) of newspaper text."""
    rng = np.random.RandomState(seed)
    lengths = np.clip(np.rint(rng.gamma(shape=4.3, scale=23 / 4.3, size=count)), 2, 90).astype(int)
    weights = 1 / (np.arange(sizes["words"]) + 2.7)
    words = rng.choice(sizes["words"], size=int(lengths.sum()), p=weights / weights.sum())
    # A word mostly has one tag.
    other = rng.randint(sizes["tags"], size=len(words))
    tags = np.where(rng.rand(len(words)) < 0.9, words * 7919 % sizes["tags"], other)
    ends = np.cumsum(lengths)
    return [(words[e - n : e].tolist(), tags[e - n : e].tolist()) for e, n in zip(ends, lengths, strict=True)]


def real_sentences(path: str, count: int, sizes: dict[str, int]) -> list[Sentence]:
    """The first `count` sentences of a CoNLL-U file after a shuffle; a word beyond the list is number 0."""
    from dynet_lite.text import read_conllu

    sentences = read_conllu(path)
    common = Counter(word for s in sentences for word in s.forms).most_common(sizes["words"] - 1)
    words = {word: i for i, (word, _) in enumerate(common, 1)}
    tags = {tag: i for i, tag in enumerate(sorted({tag for s in sentences for tag in s.upos}))}
    random.Random(7).shuffle(sentences)
    return [([words.get(w, 0) for w in s.forms], [tags[t] for t in s.upos]) for s in sentences[:count]]


# --- the program: DyNet's API only --------------------------------------------------------------------------


class Tagger:
    def __init__(self, dy: ModuleType, sizes: dict[str, int], builder: str) -> None:
        self.dy = dy
        emb, hidden, mlp, tags = (sizes[name] for name in ("emb", "hidden", "mlp", "tags"))
        rng = np.random.RandomState(11)
        self.model = model = dy.ParameterCollection()
        self.vectors = model.add_lookup_parameters((sizes["words"], emb))
        self.vectors.init_from_array(rng.uniform(-0.1, 0.1, (sizes["words"], emb)))
        kind = getattr(dy, {"vanilla": "VanillaLSTMBuilder", "compact": "CompactVanillaLSTMBuilder"}[builder])
        self.forward = kind(1, emb, hidden, model)
        self.backward = kind(1, emb, hidden, model)
        self.W1 = model.add_parameters((mlp, 2 * hidden))
        self.b1 = model.add_parameters((mlp,))
        self.W2 = model.add_parameters((tags, mlp))
        self.b2 = model.add_parameters((tags,))
        lstms = [p for lstm in (self.forward, self.backward) for p in lstm.get_parameters()[0]]
        for p in [*lstms, self.W1, self.b1, self.W2, self.b2]:
            shape = p.shape()
            bound = math.sqrt(6 / sum(shape)) if len(shape) == 2 else 0.0
            p.set_value(rng.uniform(-bound, bound, shape) if bound else np.zeros(shape))

    def loss(self, words: list[int], tags: list[int]) -> Any:
        dy, vectors = self.dy, self.vectors
        xs = [vectors[word] for word in words]
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        losses = []
        for f, b, tag in zip(fs, bs, tags):  # noqa: B905
            hidden = dy.tanh(dy.affine_transform([self.b1, self.W1, dy.concatenate([f, b])]))
            scores = dy.affine_transform([self.b2, self.W2, hidden])
            losses.append(dy.pickneglogsoftmax(scores, tag))
        return dy.esum(losses)


def prepare(dy: ModuleType, engine: Engine, setup: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Makes model and batches; the returned function trains on all batches once and says what it took."""
    sizes = setup["sizes"]
    tagger = Tagger(dy, sizes, setup["builder"])
    trainer = dy.AdamTrainer(tagger.model)
    trainer.set_clip_threshold(0)
    trainer.set_sparse_updates(True)
    sentences, size = setup["sentences"], sizes["batch"]
    batches = [sentences[i : i + size] for i in range(0, len(sentences), size)]
    wall, cpu = time.perf_counter, time.process_time

    def train() -> dict[str, Any]:
        phases, losses = dict.fromkeys(PHASES, 0.0), []
        counts: Counter[str] = Counter()
        wall_start = wall()
        for batch in batches:
            t0 = cpu()
            dy.renew_cg()
            loss = dy.esum([tagger.loss(words, tags) for words, tags in batch])
            t1 = cpu()
            value = loss.value()
            t2 = cpu()
            loss.backward()
            t3 = cpu()
            trainer.update()
            t4 = cpu()
            for phase, seconds in zip(PHASES, (t1 - t0, t2 - t1, t3 - t2, t4 - t3), strict=True):
                phases[phase] += seconds
            losses.append(value)
            if engine.module == "dynet_lite":
                stats = dy.stats()  # of this graph
                counts.update({name: stats[name] for name in ("nodes", "batches", "lower_bound")})
        times = {"wall": wall() - wall_start, "cpu": sum(phases.values())}
        return {"losses": losses, **times, **phases, **counts}

    return train


# --- the comparison -----------------------------------------------------------------------------------------


def largest_difference(answers: dict[str, list[dict[str, Any]]]) -> float:
    """Largest relative difference of a minibatch loss from the first engine's."""
    all_losses = [[loss for answer in rounds for loss in answer["losses"]] for rounds in answers.values()]
    reference = all_losses[0]
    worst = 0.0
    for losses in all_losses[1:]:
        worst = max([worst, *(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))])
    return worst if all(map(math.isfinite, (x for losses in all_losses for x in losses))) else math.inf


def report(answers: dict[str, list[dict[str, Any]]], warm: int, count: int) -> tuple[str, dict[str, Any]]:
    """The Markdown tables, and the same as data."""
    data: dict[str, Any] = {}
    rows = []
    for name, rounds in answers.items():
        timed = rounds[warm:]
        entry = {key: median([answer[key] for answer in timed]) for key in ("wall", "cpu", *PHASES)}
        data[name] = {
            "version": Engine.parse(name).version(),
            "sentences_per_cpu_second": count / entry["cpu"],
            "sentences_per_wall_second": count / entry["wall"],
            "ms_per_sentence": {phase: 1000 * entry[phase] / count for phase in PHASES},
            "rounds_cpu": [round(answer["cpu"], 4) for answer in timed],
        }
        batches = "-"
        if "batches" in timed[-1]:
            nodes, ran, bound = (timed[-1][key] for key in ("nodes", "batches", "lower_bound"))
            data[name] |= {"nodes": nodes, "batches": ran, "lower_bound": bound}
            batches = f"{nodes / ran:.1f}"
        speeds = data[name]["sentences_per_cpu_second"], data[name]["sentences_per_wall_second"]
        phases = [f"{data[name]['ms_per_sentence'][phase]:.3f}" for phase in PHASES]
        rows.append([name, *(f"{speed:,.0f}" for speed in speeds), *phases, batches])
    head = ["engine", "sentences / CPU s", "sentences / wall s", *(f"{p}, ms" for p in PHASES), "mean batch"]
    text = table(head, rows)
    # Ratios are medians over the rounds of the ratio within a round.
    names = list(answers)
    cpu = {name: [answer["cpu"] for answer in answers[name][warm:]] for name in names}

    def ratio(above: str, below: str) -> float:
        return median([b / a for a, b in zip(cpu[above], cpu[below], strict=True)])

    ratios = {above: {below: ratio(above, below) for below in names} for above in names}
    if len(names) > 1:
        rows = [[above, *(f"{ratios[above][below]:.2f}" for below in names)] for above in names]
        text += "\n\nTimes as fast as (sentences per CPU second, medians of the ratios of each round):\n\n"
        text += table(["", *names], rows)
    return text, {"engines": data, "ratios": ratios}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    engines = "dynet:0,dynet:1,dynet_lite:off,dynet_lite:on"
    parser.add_argument("--engines", default=engines, help="names with commas")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds")
    parser.add_argument("--warm", type=int, default=1, help="rounds before them")
    parser.add_argument("--batches", type=int, default=10, help="minibatches per round")
    parser.add_argument("--batch", type=int, default=SIZES["batch"], help="sentences per minibatch")
    parser.add_argument("--builder", choices=["vanilla", "compact"], default="vanilla")
    parser.add_argument("--conllu", default="", metavar="FILE", help="real sentences")
    parser.add_argument("--jsonl", default="", metavar="FILE", help="also add the JSON line to this file")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, prepare)
        return 0

    sizes = SIZES | {"batch": args.batch}
    count = args.batches * args.batch
    sentences = real_sentences(args.conllu, count, sizes) if args.conllu else made_up_sentences(count, sizes)
    words = sum(len(s[0]) for s in sentences)
    setup = {"sizes": sizes, "builder": args.builder, "sentences": sentences}
    answers = run_rounds(args.engines.split(","), __file__, setup, args.rounds, args.warm)
    if not answers:
        print("no engine is installed", file=sys.stderr)
        return 1
    worst = largest_difference(answers)
    if not worst <= TOLERANCE:
        print(f"the losses differ by {worst:.1e}, more than {TOLERANCE:.0e}: no speeds", file=sys.stderr)
        return 1
    text, data = report(answers, args.warm, len(sentences))
    where = machine()
    print(
        f"BiLSTM tagger, {args.builder} LSTM, {args.batch} sentences per update, "
        f"{words / len(sentences):.1f} words per sentence; medians of {args.rounds} rounds "
        f"of {len(sentences)} sentences; losses agree to {worst:.1e}; {where['cpu']}, load {where['load']}\n"
    )
    print(text)
    line = {"benchmark": "tagger", "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "machine": where}
    line |= {"sizes": sizes, "builder": args.builder, "text": "conllu" if args.conllu else "made up"}
    line |= {"sentences": len(sentences), "loss_difference": worst} | data
    print("\n" + json.dumps(line))
    if args.jsonl:
        with open(args.jsonl, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
