"""World: the processes of a run and what they say to each other. The only file that knows MPI; imports mpi4py in init().

Every conversation begins with a head: a few numbers of each rank, gathered by all. It tells what a rank is about to do, so
that ranks which do different things, or one that has failed, are found out there and not in a deadlock. All waiting polls
and has a time limit; after that the ranks that still answer find out who does not.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from dynet_lite import _core, config, gpus

from .board import LARGE, MOST, NONE, Board, Laid, LaidSum, Said
from .dealing import costs_of, deal, hands_of
from .pace import Pace
from .watch import Sign, Watcher, await_reader

__all__ = ["Alone", "NotAlike", "RankFailed", "World", "current", "init", "launched"]

T = TypeVar("T")
E = TypeVar("E")
Array = np.ndarray[Any, Any]

HEAD = _core._HEAD  # what, serial number, digest, and the rest for the conversation
KINDS = ("failed", "update", "first", "gather", "agree", "sum", "barrier", "close")
LIMIT = 1800.0  # seconds
AWAKE = 0.05  # seconds in which a rank that waits does not sleep
let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)
PATIENCE = 3.0  # seconds that a rank which has failed waits for the others to hear it


class RankFailed(RuntimeError):
    """Another rank has failed. That rank says why, and all end."""


class NotAlike(ValueError):
    """The ranks differ in model, settings, version or step. Raised on all of them."""


def launched() -> bool:
    """Whether mpiexec (or srun with an MPI) started this process together with others."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name]) > 1
    return "PMIX_RANK" in os.environ


class Alone:
    """The world of a single process, rank 0 of 1. Also the base class of World, whose methods have the same meaning."""

    rank, size = 0, 1
    local_rank, local_size = 0, 1  # among the ranks of this machine
    _share_cores = False  # the ranks of the machine may run on the same cores
    host = ""
    messages = bytes_sent = 0

    def share(self, batch: Sequence[E], cost: Callable[[E], float] | None = None, measured: bool = False) -> list[E]:
        """This rank's part of a mini-batch, which may be empty. The mini-batch must be the same on all ranks. See
        deal().

        measured: ranks that took less time for their parts in the last steps get more. Two runs then deal differently,
            and their sums differ by rounding.
        """
        return deal(batch, self.size, cost)[self.rank]

    def first(self, function: Callable[[], T]) -> T:
        """Calls the function on rank 0 alone, and returns its result on all ranks. The result must be picklable."""
        return function()

    def gather(self, value: T) -> list[T]:
        """A list of the values of all ranks, on every rank. They must be picklable."""
        return [value]

    def device(self, count: int | None = None) -> int:
        """The number of the accelerator that this rank takes, when its machine has `count` of them (by default: the GPUs
        that dynet_lite.devices() finds).

        They are given out by local_rank, in turns if there are fewer than ranks. ValueError if there are none.
        """
        if count is None:
            count = gpus.count()
        if count < 1:
            raise ValueError(f"[distributed] device() needs one accelerator at least; got {count}")
        return self.local_rank % count

    def threads(self) -> int:
        """How many threads a rank may use, so that the ranks of a machine together use the cores they were given."""
        cores = config.processors()
        return max(1, cores // self.local_size) if self._share_cores else cores

    def agree(self, **values: Any) -> None:
        """Raises NotAlike on every rank unless repr() of each value is the same on all of them."""

    def sum(self, values: Any) -> Array:
        """The sum over the ranks, added in their order: float64 of the same shape."""
        return np.array(values, dtype=np.float64)

    def barrier(self) -> None:
        """Waits until all ranks are here."""

    def close(self) -> None:
        """Leaves the other ranks. Called at the end of the program."""

    def fail(self, text: str, status: int = 1) -> None:
        """Ends all ranks with this message. Does nothing in a world of one."""

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}>"


class World(Alone):
    """The processes that mpiexec has started. Made by init()."""

    def __init__(self, timeout: float | None = None) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        comm = MPI.COMM_WORLD
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.host = MPI.Get_processor_name()
        self.timeout = _limit(timeout)
        self._heads, self._data, self._alarm = comm.Dup(), comm.Dup(), comm.Dup()
        self.messages = self.bytes_sent = 0
        self._serial = 0
        self._gathered = np.empty(0, np.uint8)
        self.pace = Pace(self.size)
        self._open = True
        self._sign = Sign()
        people = comm.allgather((self.host, os.getpid(), self._sign.number))
        near = {r: (pid, sign) for r, (host, pid, sign) in enumerate(people) if host == self.host}
        self.local_rank = sorted(near).index(self.rank)
        cores = comm.allgather(sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [])
        self._share_cores = any(set(cores[r]) & set(cores[self.rank]) or not cores[r] for r in near if r != self.rank)
        self._names = [f"rank {r} of {self.size} (process {pid} on {host})" for r, (host, pid, _) in enumerate(people)]
        self.local_size = len(near)
        alone = len(near) == self.size
        self._watcher = Watcher(self.host, near, alone) if self.local_rank == 0 else None
        watchers = comm.allgather(self._watcher.pid if self._watcher else 0)
        self._watcher_pid = max(watchers[r] for r in near)
        self._sign.seen()
        self._board = self._make_board(alone)
        self._hook = sys.excepthook
        sys.excepthook = self._on_exception
        atexit.register(self._close_at_end)

    def _make_board(self, alone: bool) -> Board | None:
        """None unless all ranks can read the memory of all."""
        comm = self._mpi.COMM_WORLD
        board = Board(self.rank) if alone and Board.possible(self.size) else None
        addresses = comm.allgather(board.address if board else NONE)
        opened = board is not None and board.open(addresses)
        return board if all(comm.allgather(opened)) else None

    @property
    def lays_down(self) -> bool:
        """Whether ranks lay down what they say in memory that all can read, and send only large sums."""
        return self._board is not None

    def share(self, batch: Sequence[E], cost: Callable[[E], float] | None = None, measured: bool = False) -> list[E]:
        speeds = self.pace.speeds() if measured else None
        batch = list(batch)  # which may come from a generator
        costs, rank = costs_of(batch, cost), self.rank
        hands = hands_of(costs, self.size, speeds)
        if measured:
            self.pace.begin(sum(c for c, k in zip(costs, hands, strict=True) if k == rank))
        return [example for example, k in zip(batch, hands, strict=True) if k == rank]

    # ---- conversations ---------------------------------------------------------------------------------------------

    def head(self, kind: str, *numbers: float, digest: int = 0) -> Array:
        """Gather what every rank is about to do: (size, numbers) of all ranks.

        RankFailed if one has failed; NotAlike if they are not about to do the same thing, or their digests differ.
        """
        return self.start_head(kind, *numbers, digest=digest)()

    def start_head(self, kind: str, *numbers: float, digest: int = 0) -> Callable[[], Array]:
        """Begin head(); what is returned waits for the others and gives the result. It is called, once, before the next
        conversation begins: by who put it off (_core.put_off), since that settles first.
        """
        _core.settle_steps()
        if not self._open:
            raise RuntimeError("[distributed] this world is closed")
        request = self._say(kind, digest, *numbers)
        count = 3 + len(numbers)

        def finish() -> Array:
            self.wait(request)
            heads: Array = request.heads()
            if not request.alike(3) or heads[0, 0] == 0:
                failed = [r for r in range(self.size) if heads[r, 0] == 0]
                if failed:
                    raise RankFailed(f"[distributed] {self._names[failed[0]]} failed")
                raise NotAlike("[distributed] the ranks are not in the same step: " + self._doing(heads))
            return heads[:, 3:count]

        return finish

    def _say(self, kind: str, digest: int, *numbers: float) -> Any:
        """The request for the heads of all ranks in the next conversation: heads() gives them."""
        self._serial += 1
        head = KINDS.index(kind), self._serial, digest, *numbers
        self._count(8 * HEAD)
        if self._board is not None:
            return Said(self._board, self._serial, head)
        return _Gathered(self._heads, self.size, head)

    def _doing(self, heads: Array) -> str:
        texts = [f"{KINDS[int(kind)]} (conversation {int(n)}, {int(digest):x})" for kind, n, digest in heads[:, :3]]
        other = next(r for r, text in enumerate(texts) if text != texts[0])
        return f"rank 0 is at {texts[0]}, rank {other} at {texts[other]}"

    def _count(self, size: int) -> None:
        self.messages += 1
        self.bytes_sent += size

    def wait(self, request: Any) -> None:
        """Until the request is complete. Polls: a sum takes many rounds, and each waits for both sides to look. Sleeps only when
        the other side has work of its own."""
        if request.Test():
            return
        start = time.perf_counter()
        pause = 0.0
        while True:
            waited = time.perf_counter() - start
            if self._board is not None:
                self._alarm.Iprobe()  # large sums of MPI go on meanwhile: others may wait for them
            if waited < AWAKE:
                let_others_run()
            else:
                pause = min(2e-3, max(2e-5, pause * 1.5))
                time.sleep(pause)
            if request.Test():
                break
            if waited > self.timeout:
                self._find_silent(waited)
        self.pace.wait(time.perf_counter() - start)

    def _find_silent(self, waited: float) -> None:
        """Nothing came in time: tell the first two ranks that this one is alive; they tell who is not, and end all."""
        grace = max(1.0, 0.2 * self.timeout)
        for r in range(min(2, self.size)):
            if r != self.rank:
                self._alarm.isend(self.rank, dest=r)
        alive = {self.rank}
        end = time.perf_counter() + grace * (1 + self.rank)
        while time.perf_counter() < end:
            if self.rank < 2 and self._alarm.iprobe():
                alive.add(self._alarm.recv())
            time.sleep(0.01)
        if self.rank < 2 or self.size == 2:
            silent = [name for r, name in enumerate(self._names) if r not in alive]
            who = ", ".join(silent[:4]) + ", ..." * (len(silent) > 4) if silent else "one rank (which answers now)"
            self._end(
                f"[distributed] {who} did nothing for {waited:.0f} s: it hangs, or is far too slow; all ranks end", 1
            )
        time.sleep(3 * grace)
        self._end("[distributed] the first two ranks do not answer; all ranks end", 1)

    def start_sum(self, values: Array) -> Any:
        """Begin to add up a float32 array over the ranks, in place; the same bits on all ranks. The request is for
        wait(). All ranks begin their sums, lay down numbers and gather bytes in the same order.
        """
        self._count(values.nbytes)
        if board := self._board_for(values.nbytes):
            return LaidSum(board, values)
        return self._data.Iallreduce(self._mpi.IN_PLACE, values, op=self._mpi.SUM)

    def lay_grads(self, parameters: list[Any], flagged: list[Any], count: int) -> Laid | None:
        """Lay down the `count` numbers of _core._gather_grads() for all ranks to read. None where start_sum() has to send
        them: then nothing has happened.
        """
        board = self._board_for(4 * count)
        if board is None:
            return None
        self._count(4 * count)
        return Laid(board, board.lay_grads(parameters, flagged))

    def _board_for(self, size: int) -> Board | None:
        """With room for a sum of so many bytes; None where MPI does it."""
        board = self._board
        if board is None or size > LARGE or board.lying + size > MOST:
            return None
        self._make_room(board)
        return board

    def start_gather(self, fill: Callable[[Array], Any], sizes: Sequence[int]) -> Callable[[], list[Array]]:
        """Begin to gather bytes: fill(array) writes those of this rank, uint8; sizes: how many each rank has.

        What is returned waits for the bytes of all and gives them, good until the next gathering.
        """
        ends = np.cumsum(sizes)
        if ends[-1] > self._gathered.size:
            self._gathered = np.empty(int(ends[-1]) * 5 // 4, np.uint8)
        every, starts = self._gathered, ends - sizes
        parts = [every[a:b] for a, b in zip(starts, ends, strict=True)]
        fill(parts[self.rank])
        self._count(sizes[self.rank])
        place = [every, list(sizes), starts.tolist(), self._mpi.BYTE]
        request = self._data.Iallgatherv(self._mpi.IN_PLACE, place)

        def finish() -> list[Array]:
            self.wait(request)
            return parts

        return finish

    def lay_rows(self, tables: list[Any], size: int) -> Laid | None:
        """Lay down the `size` bytes of _core._pack_rows(), where ranks lay down: nobody need know how many the others have.
        None where start_gather() has to send them.

        All ranks have laid down theirs when the next head is known.
        """
        board = self._board
        if board is None:
            return None
        self._count(size)
        self._make_room(board)
        return Laid(board, board.lay_rows(tables))

    def _make_room(self, board: Board) -> None:
        if not board.has_room():  # the others are a step behind
            self.wait(_Until(board.has_room))

    def _objects(self, kind: str, mine: Any) -> list[Any]:
        data = np.frombuffer(pickle.dumps(mine), np.uint8)
        sizes = [int(n) for (n,) in self.head(kind, data.size)]
        parts = self.start_gather(lambda place: np.copyto(place, data), sizes)()
        return [pickle.loads(part.tobytes()) for part in parts]

    def first(self, function: Callable[[], T]) -> T:
        return self._objects("first", function() if self.rank == 0 else None)[0]  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        return self._objects("gather", value)

    def agree(self, **values: Any) -> None:
        mine = {name: (zlib.crc32(repr(v).encode()), repr(v)[:200]) for name, v in _parts(values)}
        all_of_them = self._objects("agree", mine)
        differing = []
        for r, theirs in enumerate(all_of_them):
            for name in [*all_of_them[0], *(n for n in theirs if n not in all_of_them[0])]:
                a, b = all_of_them[0].get(name, (0, "nothing")), theirs.get(name, (0, "nothing"))
                if a != b:
                    shown = (
                        f"{a[1]} on rank 0, {b[1]} on rank {r}"
                        if a[1] != b[1]
                        else f"not the same on rank {r} as on rank 0"
                    )
                    differing.append(f"{name}: {shown}")
        if differing:
            raise NotAlike("[distributed] the ranks disagree; " + "; ".join(differing[:4]))

    def sum(self, values: Any) -> Array:
        mine = np.array(values, dtype=np.float64)
        parts = self._objects("sum", mine)
        if any(part.shape != mine.shape for part in parts):
            raise NotAlike(f"[distributed] sum(): the shapes differ: {[part.shape for part in parts]}")
        return np.array(sum(parts[1:], parts[0]), dtype=np.float64)

    def barrier(self) -> None:
        self.head("barrier")

    # ---- ends ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        if not self._open:
            return
        try:
            self.head("close")
        except NotAlike as error:
            self.fail(f"{error} (a program that ended too early?)")
        except RankFailed:
            self._await_end()
        if self._watcher is not None:
            self._watcher.dismiss()
        self.head("barrier")  # none ends before the watchers know that all is well
        self._open = False
        sys.excepthook = self._hook

    def _close_at_end(self) -> None:
        """What an update that was put off could not is an error of the program."""
        try:
            self.close()
        except BaseException as error:
            self._on_exception(type(error), error, error.__traceback__)

    def fail(self, text: str, status: int = 1) -> None:
        """Ends all ranks with this message, which the first of the ranks that fail writes. Does not return."""
        if not self._open:
            return
        digest = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        request = self._say("failed", digest)
        end = time.perf_counter() + PATIENCE
        heard = False
        while not heard and time.perf_counter() < end:
            heard = bool(request.Test())
            time.sleep(1e-3)
        if heard:
            heads = request.heads()
            failed = [r for r in range(self.size) if heads[r, 0] == 0]
            if failed[0] != self.rank:
                self._await_end()
            if len(failed) == self.size and (heads[:, 2] == digest).all():
                self._end(text, status)
        self._end(f"[distributed] {self._names[self.rank]} failed, all ranks end: {text}", status)

    def _end(self, text: str, status: int) -> None:
        _write(sys.stdout, "")
        _write(sys.stderr, text.rstrip("\n") + "\n")
        await_reader()
        self._quiet_watcher()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 2)  # MPI would say in its own words that it ends
        self._mpi.COMM_WORLD.Abort(status)
        os._exit(status)

    def _quiet_watcher(self) -> None:
        """The end of this process has been told: the watcher of the machine, which any of its ranks started, ends first."""
        if self._watcher is not None:
            self._watcher.dismiss()
        elif self._watcher_pid:
            try:
                os.kill(self._watcher_pid, signal.SIGKILL)
            except OSError:
                pass

    def _await_end(self) -> None:
        """Another rank ends all. Does not return."""
        _write(sys.stdout, "")
        time.sleep(PATIENCE + 10)
        os._exit(1)

    def _on_exception(self, kind: Any, error: Any, trace: Any) -> None:
        if issubclass(kind, RankFailed):
            self._await_end()
        text = "".join(traceback.format_exception(kind, error, trace))
        self.fail(text)
        self._hook(kind, error, trace)

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size} on {self.host}>"


class _Gathered:
    """The heads of a conversation, gathered by MPI."""

    def __init__(self, comm: Any, size: int, head: tuple[float, ...]) -> None:
        self._all = np.zeros((size, HEAD))
        self._head = np.zeros(HEAD)  # read until the request is complete
        self._head[: len(head)] = head
        self._request = comm.Iallgather(self._head, self._all)
        self.Test = self._request.Test

    def alike(self, n: int) -> bool:
        return bool((self._all[:, :n] == self._all[0, :n]).all())

    def heads(self) -> Array:
        return self._all


class _Until:
    """Like a request of MPI, of anything that comes to be."""

    def __init__(self, test: Callable[[], bool]) -> None:
        self.Test = test


def _write(stream: Any, text: str) -> None:
    """The text, and what was written before; nothing where the program has closed the stream: all ranks end nevertheless."""
    try:
        stream.write(text)
        stream.flush()
    except (AttributeError, OSError, ValueError):
        pass


def _parts(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values by name; what lies in dicts and lists one by one, so that a difference can be shown."""
    for name, v in values.items():
        if isinstance(v, dict):
            yield from ((f"{name}.{k}", x) for k, x in v.items())
        elif isinstance(v, list):
            yield from ((f"{name}[{k}]", x) for k, x in enumerate(v))
        else:
            yield name, v


def _limit(timeout: float | None) -> float:
    if timeout is None:
        text = os.environ.get("DYNET_LITE_TIMEOUT", "")
        try:
            timeout = float(text) if text else LIMIT
        except ValueError:
            raise ValueError(f"[distributed] DYNET_LITE_TIMEOUT must be a number of seconds; got {text!r}") from None
    if not timeout > 0:
        raise ValueError(f"[distributed] the time limit must be positive; got {timeout}")
    return float(timeout)


_world: Alone | None = None


def init(timeout: float | None = None) -> Alone:
    """The world of this process. Every call returns the same one. If mpiexec did not start the program, it is a world of
    one.

    timeout: how many seconds ranks wait for one another before the run counts as hanging (default:
        DYNET_LITE_TIMEOUT, or half an hour)

    RuntimeError if mpiexec started several processes and mpi4py is missing; otherwise all would do the same work and
    write the same files.
    """
    global _world
    if _world is None:
        if not launched():
            _world = Alone()
        else:
            try:
                _world = World(timeout)
            except ImportError as error:
                raise RuntimeError(
                    f"[distributed] this is one of several processes of mpiexec, but there is no mpi4py ({error}): "
                    "pip install 'dynet_lite[distributed]'"
                ) from None
            if _world.size == 1:
                _world.close()
                _world = Alone()
    return _world


def current() -> Alone:
    """The world of init(); a world of one process if it was not called."""
    return _world or Alone()
