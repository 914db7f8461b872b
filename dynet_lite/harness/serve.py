"""A saved recipe as a server: `python -m dynet_lite serve MODEL` answers JSON over HTTP.

    curl -s localhost:8000/predict -d '{"texts": ["The dog sleeps ."]}'

What many clients ask at the same time is answered as one batch, whatever the lengths: the engine batches it. HTTP is
Starlette's and uvicorn's business (the extra `serve`), figures for monitoring are prometheus_client's.

POST /predict   {"texts": [...], "scores": false} -> {"answers": [...]}
GET  /health    {"status": "ok", "recipe": "Tagger"}
GET  /metrics   counts and times in Prometheus' text format
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from dynet_lite.errors import DataError

from .predictor import Predictor, load
from .settings import Parser

__all__ = ["Batcher", "Full", "Limits", "application", "main"]

Answers = list[dict[str, Any]]

PATIENCE = 0.1  # seconds after which a client may have gone: it is looked for before its texts are answered
BACKLOG = 256  # connections that are taken in at a time, so that many of them do not keep others from their answers


@dataclass(frozen=True)
class Limits:
    """What a server takes on."""

    batch: int = 64  # texts that are answered together
    wait: float = (
        0.0  # seconds that a request waits for others; 0: those that come while a batch is answered are the next one
    )
    queue: int = 1024  # texts that may wait; more are refused with status 503
    texts: int = 256  # of one request
    body: int = 1 << 20  # bytes of one request


class Full(Exception):
    """More texts are waiting than the limit allows."""


class Gone(Exception):
    """The client did not wait for its answer."""


@dataclass(eq=False)
class _Request:
    texts: list[str]
    scores: bool
    answer: asyncio.Future[Answers]
    gone: Callable[[], Awaitable[bool]] | None  # is the client?
    since: float


class Batcher:
    """Puts requests together into batches and answers them one batch after the other, on a thread of its own."""

    def __init__(self, predict: Callable[[list[str], bool], Answers], limits: Limits,
                 ran: Callable[[int], None] = lambda texts: None) -> None:  # fmt: skip
        self.predict, self.limits, self.ran = predict, limits, ran
        self.waiting = 0  # texts
        self.arrived: asyncio.Queue[_Request] = asyncio.Queue()
        self.left: _Request | None = None  # did not fit into the last batch
        self.thread = ThreadPoolExecutor(1, "predict")

    async def ask(self, texts: list[str], scores: bool, gone: Callable[[], Awaitable[bool]] | None = None) -> Answers:
        """The answers to some texts. Raises Full, or what the model says of these texts. gone: tells whether somebody
        still waits; asked after a while, and if nobody does, Gone is raised."""
        if not texts:
            return []
        if self.waiting + len(texts) > self.limits.queue:
            raise Full
        loop = asyncio.get_running_loop()
        request = _Request(texts, scores, loop.create_future(), gone, loop.time())
        self.waiting += len(texts)
        self.arrived.put_nowait(request)
        return await request.answer

    async def run(self) -> None:
        """Answers until it is cancelled."""
        try:
            while True:
                await self._answer(await self._still_there(await self._collect()))
        finally:
            self.thread.shutdown(wait=True)

    async def _collect(self) -> list[_Request]:
        first = self.left or await self.arrived.get()
        self.left = None
        batch, size = [first], len(first.texts)
        end = asyncio.get_running_loop().time() + self.limits.wait
        while size < self.limits.batch:
            try:
                more = self.arrived.get_nowait()
            except asyncio.QueueEmpty:
                rest = end - asyncio.get_running_loop().time()
                if rest <= 0:
                    break
                try:
                    more = await asyncio.wait_for(self.arrived.get(), rest)
                except asyncio.TimeoutError:
                    break
            if size + len(more.texts) > self.limits.batch:
                self.left = more
                break
            batch.append(more)
            size += len(more.texts)
        self.waiting -= size
        return [request for request in batch if not request.answer.done()]  # clients that are gone are not answered

    async def _still_there(self, batch: list[_Request]) -> list[_Request]:
        """Those whose clients wait: nothing is computed for others, and they get Gone."""
        now = asyncio.get_running_loop().time()
        asked = [request for request in batch if request.gone is not None and now - request.since > PATIENCE]
        found = await asyncio.gather(*(r.gone() for r in asked if r.gone), return_exceptions=True)
        for request, gone in zip(asked, found, strict=True):
            if gone and not request.answer.done():  # an error of the connection is one client's, too
                request.answer.set_exception(gone if isinstance(gone, Exception) else Gone())
        return [request for request in batch if not request.answer.done()]

    async def _answer(self, batch: list[_Request]) -> None:
        for scores in (False, True):
            together = [request for request in batch if request.scores is scores]
            if together:
                await self._answer_alike(together)

    async def _answer_alike(self, batch: list[_Request]) -> None:
        texts = [text for request in batch for text in request.texts]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(
                self.thread, self.predict, texts, batch[0].scores
            )
            if len(answers) != len(texts):  # nobody gets the answer to another's text
                raise RuntimeError(f"[serve] expected {len(texts)} answers from the recipe; got {len(answers)}")
        except Exception as error:
            if len(batch) > 1:  # a text that the model refuses spoils nobody else's answers
                for request in batch:
                    await self._answer_alike([request])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        self.ran(len(texts))
        at = 0
        for request in batch:
            if not request.answer.done():
                request.answer.set_result(answers[at : at + len(request.texts)])
            at += len(request.texts)


# ---- HTTP ------------------------------------------------------------------------------------------------------------


class _Bad(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _read(request: Any, limits: Limits) -> tuple[list[str], bool]:
    """What a client asks; _Bad with a status and a text if it makes no sense or is too much."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limits.body:
            raise _Bad(413, f"expected at most {limits.body:,} bytes")
    try:
        asked = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise _Bad(400, "expected JSON") from None
    texts = asked.get("texts") if isinstance(asked, dict) else None
    scores = asked.get("scores", False) if isinstance(asked, dict) else None
    if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts) or not isinstance(scores, bool):
        raise _Bad(400, 'expected {"texts": ["...", ...], "scores": false}')
    if len(texts) > (most := min(limits.texts, limits.batch, limits.queue)):
        raise _Bad(413, f"expected at most {most} texts")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # half of a pair, "\ud800": no answer could repeat it
        raise _Bad(400, "expected texts that UTF-8 can hold") from None
    return texts, scores


def application(predictor: Predictor, limits: Limits = Limits()) -> Any:
    """The server as an ASGI application, to be run by uvicorn or by another server of one's own."""
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    registry = CollectorRegistry()
    answered = Counter("dynet_lite_requests", "Requests by status", ["status"], registry=registry)
    texts_seen = Counter("dynet_lite_texts", "Texts that were answered", registry=registry)
    sizes = Histogram(
        "dynet_lite_batch_texts", "Texts of a batch", buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=registry
    )
    seconds = Histogram("dynet_lite_request_seconds", "Time from request to answer", registry=registry)
    queue = Gauge("dynet_lite_waiting_texts", "Texts that wait", registry=registry)

    def ran(texts: int) -> None:
        sizes.observe(texts)
        texts_seen.inc(texts)

    batcher = Batcher(lambda texts, scores: list(predictor.recipe.answers(texts, scores)), limits, ran)
    queue.set_function(lambda: batcher.waiting)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        worker = asyncio.create_task(batcher.run())
        try:
            yield
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    async def respond(request: Any) -> tuple[int, Any]:
        try:
            return 200, {"answers": await batcher.ask(*await _read(request, limits), request.is_disconnected)}
        except _Bad as error:
            return error.status, {"error": str(error)}
        except Full:
            return 503, {"error": "too many texts are waiting; try again later"}
        except (DataError, ValueError) as error:
            return 422, {"error": str(error)}

    async def predict(request: Any) -> Any:
        try:
            with seconds.time():
                status, content = await respond(request)
        except (ClientDisconnect, Gone):
            status, content = 499, {"error": "the client is gone"}
        answered.labels(str(status)).inc()
        return JSONResponse(content, status, headers={"Retry-After": "1"} if status == 503 else None)

    async def health(request: Any) -> Any:
        return JSONResponse({"status": "ok", "recipe": type(predictor.recipe).__name__})

    async def metrics(request: Any) -> Any:
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")

    routes = [Route("/predict", predict, methods=["POST"]), Route("/health", health), Route("/metrics", metrics)]
    return Starlette(routes=routes, lifespan=lifespan)


def main(argv: Sequence[str]) -> int:
    """`serve MODEL [options]`; the exit status."""
    parser = Parser(prog="python -m dynet_lite serve", description="Answer requests over HTTP with a saved model.")
    parser.add_argument("model", metavar="MODEL", help="the model, a file written by --save")
    parser.add_argument("--source", metavar="FILE", help="the program of your own recipe")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address (default: 127.0.0.1, reachable from this machine only)"
    )
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    parser.add_argument(
        "--batch", type=int, default=64, metavar="N", help="texts to answer together, at most (default: 64)"
    )
    parser.add_argument("--wait", type=float, default=0.0, metavar="MS",
                        help="milliseconds that a request waits for others (default: 0; requests that arrive while a "
                        "batch is answered form the next one)")  # fmt: skip
    parser.add_argument(
        "--queue", type=int, default=1024, metavar="N", help="texts that may wait, at most (default: 1024)"
    )
    o = parser.parse_args(argv)
    for name in ("batch", "queue"):
        if getattr(o, name) < 1:
            parser.error(f"--{name}: expected at least 1; got {getattr(o, name)}")
    if not 0 <= o.wait <= 60_000:
        parser.error(f"--wait: expected 0 to 60000; got {o.wait}")
    if not 0 < o.port < 65_536:
        parser.error(f"--port: expected 1 to 65535; got {o.port}")
    model = load(o.model, source=o.source)
    try:
        import uvicorn

        app = application(model, Limits(o.batch, o.wait / 1000, o.queue))
    except ImportError as error:
        print(f'error: {error}; `pip install "dynet_lite[serve]"` brings what serving needs', file=sys.stderr)
        return 2
    uvicorn.run(app, host=o.host, port=o.port, log_level="info", access_log=False,
                timeout_graceful_shutdown=10, backlog=BACKLOG)  # fmt: skip
    return 0
