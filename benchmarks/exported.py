#!/usr/bin/env python
"""A trained tagger in ONNX Runtime, as exported and with int8 weights: size, accuracy on the dev set, sentences a second.

    python recipes/bilstm_tagger.py --epochs 12 --save tagger.model
    python benchmarks/exported.py tagger.model

One thread, one sentence after another; the median of 25 passes in turns, by the time of the processor. Ours, for
comparison, in mini-batches of 64.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

import dynet_lite as dy
from dynet_lite import harness, onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "recipes"))
import bilstm_tagger  # noqa: E402


def numbers(recipe: harness.Recipe, forms: list[str]) -> dict[str, np.ndarray]:
    """The inputs of the file for a sentence."""
    reader = recipe.reader
    inputs = {"words": np.array(reader.words.ids(forms))}
    if reader.chars:
        half = reader.LONGEST // 2
        letters = [reader.letters.ids(w if len(w) <= reader.LONGEST else w[:half] + w[-half:]) for w in forms]
        longest = max(map(len, letters))
        inputs["letters"] = np.array([[*x, *[0] * (longest - len(x))] for x in letters])
        inputs["letters_length"] = np.array([len(x) for x in letters])
    return inputs


def in_turns(functions: dict[str, Callable[[], object]], rounds: int = 25) -> dict[str, float]:
    """CPU seconds of each, the median over the rounds."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def main(model: str) -> None:
    recipe = harness.load_recipe(bilstm_tagger.Tagger, bilstm_tagger.Settings, model)
    dev = recipe.load_data(recipe.settings).dev
    inputs, words = [numbers(recipe, x.forms) for x in dev], sum(map(len, dev))
    forms = [x.forms for x in dev]
    passes = {"ours": lambda: [recipe.tag(forms[i : i + 64]) for i in range(0, len(forms), 64)]}
    told = {"ours": f"{' ' * 15}  {recipe.evaluate(dev).text}"}
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder, "whole.onnx"), Path(folder, "int8.onnx")
        onnx.export_recipe(recipe, whole)
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8)
        for name, path in (("float32", whole), ("int8", small)):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            found = [session.run(None, x)[0].argmax(axis=1) for x in inputs]
            right = sum(
                recipe.tags.word(i) == t
                for ids, x in zip(found, dev, strict=True)
                for i, t in zip(ids, x.upos, strict=True)
            )
            passes[name] = lambda session=session: [session.run(None, x) for x in inputs]
            told[name] = f"{path.stat().st_size:>9,} bytes  accuracy {right / words:.2%}"
        for name, seconds in in_turns(passes).items():
            print(f"{name:8} {told[name]}  {len(dev) / seconds:,.0f} sentences/s")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with dy.configure(threads=1):
        main(sys.argv[1])
