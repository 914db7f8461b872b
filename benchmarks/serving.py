#!/usr/bin/env python
"""Throughput and latency of `python -m dynet_lite serve`, with and without batching across requests.

    python benchmarks/serving.py                    # a tagger with its default sizes, weights as they are drawn
    python benchmarks/serving.py --load my.model    # another tagger or classifier

Each of N clients sends one sentence, waits for the answer, and sends the next. The two servers run in turns, one at a time, and
the figures of a cell are of all its rounds. Clients and server share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from dynet_lite.harness import catalogue, make_recipe, save_recipe
from dynet_lite.harness.find import load_program
from dynet_lite.text import read_conllu


def untrained(path: str) -> None:
    module = load_program(catalogue.program("bilstm_tagger"))
    s = module.Settings()
    save_recipe(make_recipe(module.Tagger, s, module.Tagger.build(s, module.Tagger.load_data(s).train)), path)


async def client(port: int, bodies: list[bytes], end: float, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    k = 0
    while time.perf_counter() < end:
        body = bodies[k % len(bodies)]
        k += 1
        start = time.perf_counter()
        writer.write(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        latencies.append(time.perf_counter() - start)
    writer.close()


async def load(port: int, clients: int, sentences: list[str], seconds: float) -> list[float]:
    latencies: list[float] = []
    bodies = [json.dumps({"texts": [text]}).encode() for text in sentences]
    end = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, bodies[k:] + bodies[:k], end, latencies) for k in range(clients)))
    return latencies


def serve(model: str, batch: int) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dynet_lite", "serve", model, "--port", str(port), "--batch", str(batch)]
    process = subprocess.Popen(command)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
            return process, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", help="a saved model")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=2, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    sentences = [" ".join(s.forms) for s in read_conllu(str(catalogue.treebank() / "dev.conllu"))]
    with tempfile.TemporaryDirectory() as folder:
        model = o.load or str(Path(folder) / "tagger.model")
        if not o.load:
            untrained(model)
        servers = {64: serve(model, 64), 1: serve(model, 1)}
        try:
            print(
                "| clients | batch | requests/s | median ms | 99th percentile ms | times as many |\n|---|---|---|---|---|---|"
            )
            for clients in o.clients:
                found: dict[int, list[list[float]]] = {batch: [] for batch in servers}
                for _ in range(o.rounds):
                    for batch, (_, port) in servers.items():
                        found[batch].append(asyncio.run(load(port, clients, sentences, o.seconds)))
                ratios = [len(a) / len(b) for a, b in zip(found[64], found[1], strict=True)]
                for batch, rounds in found.items():
                    times = np.concatenate(rounds) * 1e3
                    rate = np.median([len(x) for x in rounds]) / o.seconds
                    more = f"{np.median(ratios):.2f}" if batch == 64 else ""
                    cells = f"{rate:.0f} | {np.median(times):.1f} | {np.percentile(times, 99):.1f} | {more}"
                    print(f"| {clients} | {batch} | {cells} |", flush=True)
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
