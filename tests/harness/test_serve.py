"""The server: requests of many clients become batches, answers reach who asked, bad clients harm nobody."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite.harness import catalogue, make_recipe, save_recipe, serve
from dynet_lite.harness.find import load_program, settings_of
from dynet_lite.harness.serve import Batcher, Full, Gone, Limits
from dynet_lite.harness.settings import from_dict


class Model:
    """Answers each text with its length and remembers the batches; "bad" is refused."""

    def __init__(self, pause: float = 0.0) -> None:
        self.batches: list[int] = []
        self.pause = pause

    def __call__(self, texts: list[str], scores: bool) -> list[dict[str, Any]]:
        time.sleep(self.pause)
        if "bad" in texts:
            raise ValueError("a bad text")
        self.batches.append(len(texts))
        return [{"length": len(text), "text": text, "scores": scores} for text in texts]


def run(model: Model, limits: Limits, asks: list[tuple[list[str], bool]]) -> list[Any]:
    async def main() -> list[Any]:
        batcher = Batcher(model, limits)
        worker = asyncio.create_task(batcher.run())
        found = await asyncio.gather(*(batcher.ask(*ask) for ask in asks), return_exceptions=True)
        assert batcher.waiting == 0
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        return found

    return asyncio.run(main())


def test_requests_that_come_together_are_one_batch() -> None:
    model = Model()
    asks = [([f"text {i}", "x" * i], False) for i in range(10)]
    found = run(model, Limits(batch=64, wait=0.05), asks)
    assert model.batches == [20]
    assert [[a["text"] for a in answers] for answers in found] == [texts for texts, _ in asks]


def test_batches_keep_to_their_size() -> None:
    model = Model()
    found = run(model, Limits(batch=8, wait=0.05), [(["a", "b", "c"], False)] * 9)
    assert len(found) == 9 and max(model.batches) <= 8 and sum(model.batches) == 27
    assert len(model.batches) == 5  # two requests a batch, the last alone


def test_with_and_without_scores() -> None:
    found = run(Model(), Limits(wait=0.05), [([str(i)], i % 2 == 0) for i in range(6)])
    assert [answers[0]["scores"] for answers in found] == [True, False] * 3
    assert [answers[0]["text"] for answers in found] == list("012345")


def test_a_bad_text_spoils_nobody_elses_answer() -> None:
    found = run(Model(), Limits(wait=0.05), [(["a"], False), (["bad"], False), (["b"], False)])
    assert found[0][0]["text"] == "a" and found[2][0]["text"] == "b"
    assert isinstance(found[1], ValueError)


def test_a_full_queue_refuses() -> None:
    found = run(Model(pause=0.01), Limits(batch=2, queue=4), [(["a"], False)] * 9)
    assert sum(isinstance(x, Full) for x in found) == 5
    assert all(isinstance(x, Full) or x[0]["text"] == "a" for x in found)


def test_a_client_that_is_gone_is_not_answered() -> None:
    model = Model(pause=0.02)

    async def main() -> None:
        batcher = Batcher(model, Limits(batch=1))
        worker = asyncio.create_task(batcher.run())
        first = asyncio.create_task(batcher.ask(["a"], False))
        gone = asyncio.create_task(batcher.ask(["b"], False))
        last = asyncio.create_task(batcher.ask(["c"], False))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await first)[0]["text"] == "a" and (await last)[0]["text"] == "c"
        worker.cancel()
        await asyncio.gather(worker, gone, return_exceptions=True)

    asyncio.run(main())
    assert sum(model.batches) == 2


def test_a_broken_connection_stops_nobody_else() -> None:
    model = Model(pause=2 * serve.PATIENCE)

    async def broken() -> bool:
        raise RuntimeError("the connection is broken")

    async def main() -> list[Any]:
        batcher = Batcher(model, Limits(batch=1))
        worker = asyncio.create_task(batcher.run())
        asks = [batcher.ask(["a"], False), batcher.ask(["b"], False, broken), batcher.ask(["c"], False)]
        found = await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 30)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        return found

    a, b, c = asyncio.run(main())
    assert a[0]["text"] == "a" and isinstance(b, RuntimeError) and c[0]["text"] == "c"


def test_a_recipe_that_leaves_answers_out() -> None:
    class Short(Model):
        def __call__(self, texts: list[str], scores: bool) -> list[dict[str, Any]]:
            return [answer for answer in super().__call__(texts, scores) if answer["text"]]

    first, empty, last = run(Short(), Limits(wait=0.05), [(["a"], False), ([""], False), (["c"], False)])
    assert first[0]["text"] == "a" and last[0]["text"] == "c"
    assert isinstance(empty, RuntimeError) and "expected 1 answers from the recipe; got 0" in str(empty)


def test_nothing_is_computed_for_clients_that_left_the_queue() -> None:
    model = Model(pause=2 * serve.PATIENCE)

    async def yes() -> bool:
        return True

    async def no() -> bool:
        return False

    async def main() -> list[Any]:
        batcher = Batcher(model, Limits(batch=2))
        worker = asyncio.create_task(batcher.run())
        first = asyncio.create_task(batcher.ask(["a", "a"], False, yes))  # nobody is asked who has just come
        await asyncio.sleep(serve.PATIENCE / 2)
        rest = [batcher.ask([text], False, gone) for text, gone in zip("bcd", (yes, no, yes), strict=True)]
        found = await asyncio.gather(first, *rest, return_exceptions=True)
        assert batcher.waiting == 0
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        return found

    first, b, c, d = asyncio.run(main())
    assert [answer["text"] for answer in first] == ["a", "a"] and c[0]["text"] == "c"
    assert isinstance(b, Gone) and isinstance(d, Gone)
    assert model.batches == [2, 1]


def test_a_request_that_never_fits_is_too_large() -> None:
    """More texts than may wait: later there is no place for them, either."""

    class Request:
        async def stream(self) -> AsyncIterator[bytes]:
            yield b'{"texts": ["a", "b", "c"]}'

    assert asyncio.run(serve._read(Request(), Limits(queue=3))) == (["a", "b", "c"], False)
    with pytest.raises(serve._Bad, match="at most 2 texts") as caught:
        asyncio.run(serve._read(Request(), Limits(queue=2)))
    assert caught.value.status == 413


# ---- over HTTP -------------------------------------------------------------------------------------------------------


class Server:
    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, json.loads(text) if text.startswith("{") else text
        finally:
            connection.close()

    def predict(self, **body: Any) -> tuple[int, Any]:
        return self.ask("POST", "/predict", json.dumps(body).encode())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("serve") / "tagger.model")
    kind = load_program(catalogue.program("bilstm_tagger")).Tagger
    s = from_dict(settings_of(kind), kind.smoke, "test")
    save_recipe(make_recipe(kind, s, kind.build(s, kind.load_data(s).train)), path)
    return path


@pytest.fixture
def server(model: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """It may have options: @pytest.mark.parametrize("server", [options], indirect=True)."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    pytest.importorskip("prometheus_client")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-m", "dynet_lite", "serve", model, "--port", str(port), *getattr(request, "param", [])], env=env, cwd=Path(model).parent,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    found = Server(process, port)
    try:
        for _ in range(300):
            try:
                found.ask("GET", "/health")
                break
            except OSError:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.1)
        yield found
    finally:
        process.kill()
        process.communicate()


def test_answers_over_http(server: Server, model: str) -> None:
    texts = ["the dog", "a", "the dog sleeps ."]
    expected = dy.load_recipe(model).predict(texts)
    assert server.predict(texts=texts) == (200, {"answers": expected})
    assert server.predict(texts=[]) == (200, {"answers": []})
    assert server.ask("GET", "/health") == (200, {"status": "ok", "recipe": "Tagger"})
    status, text = server.ask("GET", "/metrics")
    assert status == 200 and "dynet_lite_texts_total 3.0" in text


def test_many_clients_get_their_own_answers(server: Server, model: str) -> None:
    texts = [" ".join(["dog"] * (1 + i % 7)) + f" {i}" for i in range(64)]
    expected = dy.load_recipe(model).predict(texts)
    found: dict[int, Any] = {}

    def client(k: int) -> None:
        for i in range(k, len(texts), 8):
            found[i] = server.predict(texts=[texts[i]])

    threads = [threading.Thread(target=client, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, answer in enumerate(expected):
        assert found[i][0] == 200
        assert found[i][1]["answers"][0] == answer


def test_nonsense_and_too_much(server: Server) -> None:
    for body in (b"", b"nonsense", b"[1]", b'{"texts": "a"}', b'{"texts": [1]}', b'{"texts": ["a"], "scores": 1}', b"\xff",
                 b"[" * 100_000):  # fmt: skip
        status, answer = server.ask("POST", "/predict", body)
        assert status == 400 and answer["error"].startswith("expected"), body[:20]
    assert server.predict(texts=["the \ud800"]) == (400, {"error": "expected texts that UTF-8 can hold"})
    assert server.predict(texts=["a"] * 300)[0] == 413
    assert server.ask("POST", "/predict", b" " * (2 << 20))[0] == 413
    assert server.ask("GET", "/predict")[0] == 405
    assert server.ask("GET", "/nothing")[0] == 404
    assert server.predict(texts=["the dog"])[0] == 200


def test_clients_that_vanish(server: Server) -> None:
    request = b'POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"texts": ["a'
    whole = b'POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n{"texts": ["dog"]}'
    for data in (b"", b"POST", request, whole) * 5:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(data)
    assert server.predict(texts=["the dog"])[0] == 200


def test_good_clients_among_bad_ones(server: Server, model: str) -> None:
    """Clients that vanish in the middle, send nonsense or too much: the others get the answers to what they asked."""
    texts = [" ".join(["dog"] * (1 + i % 5)) + f" x{i}" for i in range(48)]
    expected, found = dy.load_recipe(model).predict(texts), dict[int, Any]()
    done = threading.Event()

    def good(k: int) -> None:
        for i in range(k, len(texts), 4):
            found[i] = server.predict(texts=[texts[i]], scores=False)
            while found[i][0] == 503:  # too much at this moment: said, and nothing is lost
                time.sleep(0.05)
                found[i] = server.predict(texts=[texts[i]], scores=False)

    def bad(data: bytes, wait: bool) -> None:
        while not done.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(data)
                if wait:
                    client.settimeout(5)
                    client.recv(100)
            time.sleep(0.002)

    def request(body: bytes, length: int) -> bytes:
        return b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (length, body)

    whole = b'{"texts": ["the dog", "a"]}'
    nasty = [
        (request(whole, len(whole)), False),
        (request(whole, 9999), False),
        (request(b"[{", 2), True),
        (b"\x00\xff\r\n\r\n", True),
    ]
    bad_ones = [threading.Thread(target=bad, args=x, daemon=True) for x in nasty]
    good_ones = [threading.Thread(target=good, args=(k,)) for k in range(4)]
    for thread in (*bad_ones, *good_ones):
        thread.start()
    for thread in good_ones:
        thread.join()
    done.set()
    assert found == {i: (200, {"answers": [answer]}) for i, answer in enumerate(expected)}
    assert server.process.poll() is None
    for _ in range(100):  # what is left of the bad ones is dropped
        status, text = server.ask("GET", "/metrics")
        if "dynet_lite_waiting_texts 0.0" in text:
            break
        time.sleep(0.1)
    assert status == 200 and "dynet_lite_waiting_texts 0.0" in text


@pytest.mark.parametrize(("options", "said"), [(["--port", "0"], "--port: expected 1 to 65535; got 0"), (["--batch", "0"], "at least 1; got 0"),
                                               (["--wait", "-1"], "--wait: expected 0 to 60000; got -1.0")])  # fmt: skip
def test_wrong_options(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        serve.main(["a.model", *options])
    assert said in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("server", [["--wait", "2000", "--batch", "300"]], indirect=True)
def test_it_stops_when_told_to_and_answers_first(server: Server) -> None:
    """The requests wait for others when it is told."""
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(server.predict(texts=["the dog"] * 60))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        if "dynet_lite_waiting_texts 240.0" in server.ask("GET", "/metrics")[1]:
            break
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) in (0, -signal.SIGTERM)
    assert server.process.stderr and f"running on http://127.0.0.1:{server.port}" in server.process.stderr.read()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(status == 200 and len(answer["answers"]) == 60 for status, answer in found)
