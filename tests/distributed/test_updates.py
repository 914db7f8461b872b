"""n ranks make the updates of one process, up to the order of sums; and how many bytes and messages that takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.distributed import deal
from dynet_lite.distributed.board import Board
from dynet_lite.distributed.pace import Pace

TRAINERS = [name for name in dir(dy) if name.endswith("Trainer") and name != "Trainer"]

# Trains by every case of the table, in one process or several; the weights go to a file.
PROGRAM = """
    import sys
    import numpy as np
    import dynet_lite as dy

    world = dy.distributed.init()
    rng = np.random.RandomState(1)
    data = [(rng.randint(0, 50, rng.randint(1, 9)).tolist(), float(rng.randn())) for _ in range(40)]
    orders = [rng.randint(0, 40, 5) for _ in range(100)]
    out = {}
    for case in sys.argv[2:]:
        kind, *more = case.split(",")
        dy.reset_random_seed(3 + world.rank)  # the weights of rank 0 count
        m = dy.ParameterCollection()
        W, V, never, odd, frozen = (m.add_parameters(d) for d in ((8, 6), (1, 8), 3, 8, 8))
        E = m.add_lookup_parameters((50, 6))
        frozen.set_updated(False)
        if kind == "EGTrainer":  # a rule for positive weights
            for p in (W, V, never, odd):
                p.set_value(np.abs(p.as_array()) + 0.1)
            E.init_from_array(np.abs(E.as_array()) + 0.1)
        inner = getattr(dy, kind)(m)
        for word in more:
            name, _, value = word.partition("=")
            if name == "clip":
                inner.set_clip_threshold(float(value))
            elif name == "decay":
                m.set_weight_decay_lambda(float(value))
            elif name == "average":
                inner.exponential_moving_average(float(value))
            elif name == "sparse":
                inner.set_sparse_updates(value == "1")
        trainer = dy.distributed.Trainer(inner, bucket=100 if "buckets" in more else 1 << 20)
        dy._core.settings.least_work = 0  # threads share small mini-batches, too
        dy.configure(threads=2 if "threads" in more else 1)
        for order in orders[:100 if kind == "SimpleSGDTrainer" else 20]:
            batch = [data[i] for i in order[:2 if "few" in more else 5]]
            dy.renew_cg()
            losses = []
            for words, y in world.share(batch, cost=lambda x: len(x[0])):
                h = dy.tanh(W * dy.esum([E[w] for w in words]) + frozen)
                if len(words) > 6:
                    h = h + odd  # a parameter that only some ranks touch
                losses.append(dy.squared_distance(V * h, dy.scalarInput(y)))
            if losses:
                loss = dy.esum(losses) * (1 / len(batch))
                if "buckets" in more:
                    trainer.backward(loss)  # sends while it runs
                else:
                    loss.backward()
            trainer.update()
        trainer.check_weights()
        if "average" in case:
            trainer.swap_params_to_moving_average()
        out[case] = np.concatenate([p.as_array().ravel() for p in m.parameters_list() + m.lookup_parameters_list()])
    if world.rank == 0:
        np.savez(sys.argv[1], **out)
"""
CASES = [*TRAINERS, "SimpleSGDTrainer,clip=0.05", "SimpleSGDTrainer,decay=0.001", "AdamTrainer,decay=0.001",
         "AdamTrainer,clip=0", "AdamTrainer,sparse=0", "SimpleSGDTrainer,average=0.9", "SimpleSGDTrainer,few",
         "SimpleSGDTrainer,threads,buckets", "SimpleSGDTrainer,buckets", "SimpleSGDTrainer,few,buckets", "AdamTrainer,buckets"]  # fmt: skip


# Sums and rows in memory that the ranks of one machine share, or in messages.
WAYS = pytest.mark.parametrize("memory", ["1", "0"], ids=["memory", "messages"])


@WAYS
def test_ranks_make_the_updates_of_one_process(ranks: Any, tmp_path: Path, memory: str) -> None:
    alone, two, again, three = (tmp_path / name for name in ("alone.npz", "two.npz", "again.npz", "three.npz"))
    for n, path in ((0, alone), (2, two), (2, again)):
        ranks(n, PROGRAM, path, *CASES, DYNET_LITE_SHARED_MEMORY=memory)
    some = ["SimpleSGDTrainer", "SimpleSGDTrainer,few", "AdamTrainer", "SimpleSGDTrainer,few,buckets"]
    ranks(3, PROGRAM, three, *some, DYNET_LITE_SHARED_MEMORY=memory)
    one = np.load(alone)
    for case in CASES:
        # Rules that divide by the root of a sum of squares enlarge the rounding of small gradients.
        bound = 1e-5 if case.startswith("SimpleSGD") else 2e-3
        for path in (two, three) if case in some else (two,):
            difference = np.abs(np.load(path)[case] - one[case]).max() / np.abs(one[case]).max()
            assert difference <= bound, f"{case}: {difference} in {path.name}"
        assert np.isfinite(one[case]).all()
        assert np.array_equal(np.load(two)[case], np.load(again)[case]), f"{case}: other bits in another run"
    assert np.array_equal(np.load(two)["SimpleSGDTrainer"], np.load(two)["SimpleSGDTrainer,buckets"])


@WAYS
def test_bytes_and_messages_of_a_step(ranks: Any, memory: str) -> None:
    program = """
        import os
        import dynet_lite as dy
        world = dy.distributed.init()
        m = dy.ParameterCollection()
        W, E = m.add_parameters((8, 6)), m.add_lookup_parameters((1000, 6))
        trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m))
        before = world.messages, world.bytes_sent
        dy.renew_cg()
        dy.sum_elems(W * dy.esum([E[3 * world.rank + k] for k in (0, 1, 1)])).backward()
        trainer.update()
        W.as_array()  # the update is over
        os.write(1, b"%d %d\\n" % (world.messages - before[0], world.bytes_sent - before[1]))  # lines of ranks do not mix
    """
    # A head of 9 numbers of 8 bytes; 48 gradients and a count of 4 bytes; how many rows, 2 rows of a number and 6 gradients.
    assert (
        ranks(2, program, DYNET_LITE_SHARED_MEMORY=memory).stdout.split() == ["3", str(72 + 49 * 4 + 4 + 2 * 7 * 4)] * 2
    )


@WAYS
def test_buckets_are_sent_while_backward_runs(ranks: Any, memory: str) -> None:
    """One message for each; what is complete at the same time but later in the row waits."""
    program = """
        import os
        import numpy as np
        import dynet_lite as dy
        world = dy.distributed.init()
        m = dy.ParameterCollection()
        first, small, large, last = (m.add_parameters(d) for d in ((5, 5), 5, (40, 5), 40))
        E = m.add_lookup_parameters((9, 5))
        trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m), bucket=400)
        def noted(function, size):
            def call(*arguments):
                sizes.append(size(*arguments) if running else -size(*arguments))
                return function(*arguments)
            return call
        if world.lays_down:
            world.lay_grads = noted(world.lay_grads, lambda parameters, flagged, count: count)
        else:
            world.start_sum = noted(world.start_sum, lambda numbers: numbers.size)
        for step in range(3):
            sizes, before = [], (world.messages, world.bytes_sent)
            dy.renew_cg()
            h = dy.tanh(dy.affine_transform([small, first, E[world.rank]]))
            loss = dy.pickneglogsoftmax(dy.affine_transform([last, large, h]), 3)
            running = True
            if step < 2 or world.rank:  # in the last step rank 0 has no examples
                trainer.backward(loss)
            running = False
            trainer.update()
            large.as_array()  # the update is over
            messages, sent = world.messages - before[0], world.bytes_sent - before[1]
            os.write(1, b"%d %d: %s, %d, %d\\n" % (step, world.rank, str(sizes).encode(), messages, sent))
        trainer.check_weights()
    """
    # Of 400 bytes: the last 40 numbers alone, since the next ones are more; 200 numbers; 30 numbers and 4 counts.
    bytes_of = 72 + 4 * (40 + 200 + 34) + 4 + 24
    late, early = "[-40, -200, -34]", "[40, 200, -34]"
    want = [f"0 {r}: {late}, 5, {bytes_of}" for r in (0, 1)] + [f"1 {r}: {early}, 5, {bytes_of}" for r in (0, 1)]
    want += [f"2 0: {late}, 5, {bytes_of - 24}", f"2 1: {early}, 5, {bytes_of}"]
    assert sorted(ranks(2, program, DYNET_LITE_SHARED_MEMORY=memory).stdout.splitlines()) == sorted(want)


def test_sums_in_memory_and_in_messages(ranks: Any) -> None:
    """Of all sizes, one after another and several at once, more ranks than two: the same bits, in the order of the ranks."""
    program = """
        import os
        import numpy as np
        import dynet_lite as dy
        from dynet_lite.distributed import board
        world = dy.distributed.init()
        large = board.LARGE // 4
        assert world.lays_down == (os.environ["DYNET_LITE_SHARED_MEMORY"] == "1")
        for step in range(5):
            rngs = [np.random.RandomState(100 * step + r) for r in range(world.size)]
            for sizes in ((0, 1, 17), (3000,), (large, 5, large + 1), (70_000, 70_000)):
                made = [[rng.randn(n).astype(np.float32) for n in sizes] for rng in rngs]
                mine = [a.copy() for a in made[world.rank]]
                requests = [world.start_sum(a) for a in mine]
                if world.rank == step % world.size:
                    world.sum([1])  # one rank is in another conversation: sums do not mind
                for request in requests:
                    world.wait(request)
                if world.rank != step % world.size:
                    world.sum([1])
                for k, a in enumerate(mine):
                    want = made[0][k].copy()
                    for other in made[1:]:
                        want += other[k]
                    assert np.array_equal(a, want) or not world.lays_down
                    assert np.allclose(a, want, atol=1e-5)
        if world.lays_down:
            number = world._board.lay(np.full(3 * world.rank, world.rank, np.uint8))
            world.barrier()
            assert [part.tolist() for part in world._board.read(number)] == [[r] * (3 * r) for r in range(world.size)]
            world._board.taken(number)
            request = world.start_sum(np.zeros(1 + world.rank, np.float32))
            try:
                world.wait(request)
            except ValueError as error:
                os.write(1, f"{error}\\n".encode())
            world.barrier()
        os.write(1, b"done\\n")
        world.fail("enough", 3)
    """
    for n, memory in ((2, "1"), (3, "1"), (3, "0")):
        done = ranks(n, program, ok=False, DYNET_LITE_SHARED_MEMORY=memory)
        assert done.returncode == 3 and done.stdout.count("done\n") == n, done.stdout + done.stderr
        assert done.stdout.count("[distributed] the ranks add up arrays of different sizes") == n * int(memory)


def test_what_lies_is_kept_until_all_have_taken_it() -> None:
    """Two boards in one process: neither writes over what the other has not taken."""
    boards = [Board(0), Board(1)]
    addresses = [board.address for board in boards]
    assert all(board.open(addresses) for board in boards)
    assert not Board(0).open([*addresses[:1], (addresses[1][0], addresses[0][1], 5)])  # some other file
    first, second = boards

    def lay(board: Board, value: int, size: int = 100) -> int:
        return board.lay(np.full(size, value, np.uint8))

    for step in range(1, 9):
        assert first.has_room() and second.has_room()
        number = lay(first, step, size := 1000 * 3**step)
        assert not first.complete(number)
        assert lay(second, 100 + step, 7) == number and second.complete(number)
        mine, others = first.read(number)
        assert mine.tolist() == [step] * size and others.tolist() == [100 + step] * 7
        first.taken(number)
        late = lay(first, 50)  # the second is behind
        assert second.read(number)[0].tolist() == [step] * size  # still there
        second.taken(number)
        lay(second, 60)
        for board in boards:
            assert [part[0] for part in board.read(late)] == [50, 60]
            board.taken(late)
    lay(first, 1), lay(second, 1)
    first.taken(17)
    lay(first, 2), first.taken(18)
    assert not first.has_room()  # where 17 lies, which the second has not taken
    second.taken(17)
    assert first.has_room()


def test_many_things_lie_where_they_were_laid() -> None:
    """However far behind the other is: what cannot lie there is an error."""
    boards = [Board(0), Board(1)]
    addresses = [board.address for board in boards]
    assert all(board.open(addresses) for board in boards)
    first, second = boards
    laid = 0
    for _ in range(2):  # into each of the two files as much as can be
        before = laid
        assert first.has_room()
        with pytest.raises(RuntimeError, match="messages at once are too many"):
            while True:
                assert first.lay(np.full(4, (laid + 1) % 251, np.uint8)) == laid + 1
                laid += 1
        for number in range(before, laid):
            first.taken(number + 1)
    assert not first.has_room()
    for number in range(1, laid + 1, 7):  # of which the other has taken nothing
        assert second.read(number)[0].tolist() == [number % 251] * 4


def test_an_update_is_put_off_until_somebody_looks(ranks: Any) -> None:
    """It does not wait for a rank that is late; whoever looks does, and what was set in between is for the next one."""
    program = """
        import os, threading, time
        import dynet_lite as dy
        world = dy.distributed.init()
        m = dy.ParameterCollection()
        w = m.add_parameters(3, init=0)
        trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m, 0.5))

        def weights():
            return w.as_array().tolist()
        def in_a_thread():
            got = []
            thread = threading.Thread(target=lambda: got.append(weights()))
            thread.start()
            thread.join()
            return got[0]
        def in_a_graph():
            dy.renew_cg()
            return [dy.pick(w, k).value() for k in range(3)]
        def in_a_fork():
            child = os.fork()
            if child == 0:
                os._exit(7 if weights() == [done * -1.0] * 3 else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            return weights()

        done = 0
        for look in (weights, in_a_graph, in_a_thread, in_a_fork, lambda: (world.barrier(), weights())[1]):
            for overlap in (True, False):
                dy.configure(overlap=overlap)
                world.barrier()
                dy.renew_cg()
                trainer.backward(dy.sum_elems(w))
                if world.rank:
                    time.sleep(0.5)
                start = time.perf_counter()
                trainer.update()
                done += 1
                spent = time.perf_counter() - start
                trainer.learning_rate = 100
                assert trainer.updates == done
                assert look() == [done * -1.0] * 3, (look(), done)
                looked = time.perf_counter() - start
                trainer.learning_rate = 0.5
                if world.rank == 0:
                    assert looked > 0.3 and (spent < 0.3) == overlap, (spent, looked, overlap)
        trainer.check_weights()
    """
    ranks(2, program)


def test_backward_passes_that_would_be_lost(ranks: Any) -> None:
    program = """
        import os, sys
        import dynet_lite as dy
        world = dy.distributed.init()
        m = dy.ParameterCollection()
        w, v = m.add_parameters(4, init=1), m.add_parameters(3, init=1)
        trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m, 0.5))
        trainer.set_clip_threshold(0)
        def loss():
            dy.renew_cg()
            return dy.sum_elems(w)
        for _ in range(2):
            loss().backward()  # a pass before is fine
            trainer.backward(loss())
            trainer.update()
        assert w.as_array().tolist() == [1 - 0.5 * 4 * 2] * 4 and v.as_array().tolist() == [1] * 3
        trainer.backward(loss())
        for wrong in (lambda: trainer.backward(loss()), lambda: (loss().backward(), trainer.update())):
            try:
                wrong()
            except RuntimeError as error:
                os.write(1, f"{error}\\n".encode())
        world.barrier()
        world.fail("enough", 3)
    """
    done = ranks(2, program, ok=False)
    out = done.stdout
    assert done.returncode == 3 and done.stderr.startswith("enough\n"), done.stderr  # some MPIs say more
    assert out.count("backward() is called once before each update()") == 2
    assert out.count("a backward pass, or a change of what is trained, came after backward(): it is lost") == 2


def test_dealing_by_cost() -> None:
    costs = [9, 1, 1, 1, 5, 1, 4, 2]
    parts = deal(list(range(8)), 2, cost=costs.__getitem__)
    assert sorted(parts[0] + parts[1]) == list(range(8)) and all(part == sorted(part) for part in parts)
    assert [sum(costs[i] for i in part) for part in parts] == [12, 12]
    assert deal(["a", "bb"], 3) == [["bb"], ["a"], []]
    assert deal([], 2) == [[], []]
    assert deal([1, 2], 1) == [[1, 2]]
    assert deal(iter("ab"), 2) == deal(["a", "b"], 2, speeds=iter([1, 1])) == [["a"], ["b"]]  # type: ignore[arg-type]
    assert deal([np.array(2.0), 3], 2) == [[2.0], [3]]
    with pytest.raises(ValueError, match=r"\[deal\] a cost must be a number >= 0; got nan"):
        deal([1], 2, cost=lambda x: float("nan"))
    with pytest.raises(ValueError, match="at least one part"):
        deal([1], 0)


def test_parts_by_speed() -> None:
    costs = [9, 1, 1, 1, 5, 1, 4, 2]
    parts = deal(list(range(8)), 2, costs.__getitem__, speeds=[1, 2])
    assert sorted(parts[0] + parts[1]) == list(range(8)) and all(part == sorted(part) for part in parts)
    assert [sum(costs[i] for i in part) for part in parts] == [8, 16]
    assert deal([7] * 6, 3, lambda _: 1, speeds=[2, 2, 2]) == deal([7] * 6, 3, lambda _: 1)
    for speeds in ([1], [1, 0], [1, float("nan")], [1, float("inf")]):
        with pytest.raises(ValueError, match=r"\[deal\] 2 speeds > 0 are needed"):
            deal([1], 2, speeds=speeds)


def test_pace_is_that_of_the_update_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all ranks know, whether or not they have ended the last update; waiting does not count."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    pace = Pace(2)

    def step(seconds: float, waited: float, cost: float, other: float) -> None:
        pace.begin(cost)
        now[0] += seconds
        pace.wait(waited)
        mine = pace.end()
        assert mine == (pytest.approx((seconds - waited) / cost) if cost else 0)
        before = pace.speeds()
        pace.learn(np.array([mine, other]))
        assert pace.speeds() == before

    step(5, 1, 2, 1)
    assert pace.speeds() is None  # the first update is not the one before the last
    step(9, 1, 2, 1)
    assert pace.speeds() == [1 / 2, 1]
    step(3, 1, 0, 0)  # nothing to do: what was known stays
    assert pace.speeds() == pytest.approx([1 / (0.8 * 2 + 0.2 * 4), 1])
    step(1, 0, 1, 1)
    assert pace.speeds() == pytest.approx([1 / 2.4, 1])
    assert pace.end() == 0.0  # no mini-batch was dealt


def test_rows_that_one_rank_reads_owe_the_same_decay(ranks: Any) -> None:
    """Weight decay is paid by rows when they are read: an evaluation on rank 0 must leave no trace."""
    program = """
        import dynet_lite as dy

        world = dy.distributed.init()
        m = dy.ParameterCollection()
        E, V = m.add_lookup_parameters((60, 5)), m.add_parameters(5)
        m.set_weight_decay_lambda(0.01)
        trainer = dy.distributed.Trainer(dy.AdamTrainer(m))

        def step(rows):
            dy.renew_cg()
            trainer.backward(dy.esum([dy.tanh(dy.dot_product(V, E[row])) for row in rows]))
            trainer.update()

        def reads(part):
            dy.renew_cg()
            if part % 4 == 0:
                dy.esum([dy.dot_product(V, E[row]) for row in range(0, 60, 2)]).value()  # where they lie
            elif part % 4 == 1:
                dy.sum_elems(E.batch(list(range(0, 60, 3)))).value()  # copies
            elif part % 4 == 2:
                dy.sum_elems(E * dy.ones(60)).value()  # the table as a matrix
            else:
                E.as_array(), E.row_as_array(7)

        step([1, 2])
        for part in range(9):
            if world.rank == part % 2:
                reads(part)
            if part == 4:
                E.init_row(9, [1, 2, 3, 4, 5])
            if part == 6:
                E.scale(0.9)
            step([part, 2 * part, 40])
            step([part + 1])
        trainer.check_weights()
        if world.rank:
            reads(1)
        trainer.share_weights()
        step([3])
        trainer.check_weights()
    """
    ranks(2, program)


def test_a_slow_rank_gets_less(ranks: Any) -> None:
    program = """
        import os, time
        import dynet_lite as dy
        world = dy.distributed.init()
        m = dy.ParameterCollection()
        w = m.add_parameters(3)
        trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m))
        for step in range(8):
            mine = world.share(range(60), measured=True)
            time.sleep(len(mine) * (0.003 if world.rank else 0.001))
            dy.renew_cg()
            (dy.sum_elems(w) * len(mine)).backward()
            trainer.update()
        trainer.check_weights()
        os.write(1, b"%d %d\\n" % (world.rank, len(mine)))
    """
    sizes = dict(map(int, line.split()) for line in ranks(2, program).stdout.splitlines())
    assert sum(sizes.values()) == 60 and sizes[0] > 1.7 * sizes[1]


def test_gradients_as_flat_arrays() -> None:
    m = dy.ParameterCollection()
    a, b, t = m.add_parameters((2, 3)), m.add_parameters(2), m.add_lookup_parameters((5, 2))
    dy.renew_cg()
    dy.sum_elems(a * dy.inputVector([1, 2, 3]) + t[4]).backward()
    out = np.full(10, 7, np.float32)
    _core._gather_grads([a, b], out, [b, a])
    assert out.tolist() == [1, 1, 2, 2, 3, 3, 0, 0, 0, 1]
    touched, numbers = np.array([0, 2], np.float32), np.arange(8, dtype=np.float32)
    _core._scatter_grads([a, b], numbers, touched)
    assert not a.grad_as_array().any() and b.grad_as_array().tolist() == [6, 7]
    with pytest.raises(ValueError, match="10 numbers are needed; got 9"):
        _core._gather_grads([a, b], out[:9], [b, a])
    for wrong in ((numbers[:7], touched), (numbers, touched[:1])):
        with pytest.raises(ValueError, match=r"\[scatter_grads\] 2 parameters have 8 numbers"):
            _core._scatter_grads([a, b], *wrong)
    assert b.grad_as_array().tolist() == [6, 7]


def test_sums_of_gradients_that_lie_somewhere() -> None:
    """In the order of the parts, of all sizes; float32, so that the order shows."""
    rng = np.random.RandomState(1)
    m = dy.ParameterCollection()
    members = [m.add_parameters(n) for n in (1, 4097, 20_000)]
    size = sum(p.shape()[0] for p in members)
    for count in (2, 3, 4):
        parts = [(rng.randn(size + 3) * 10.0 ** rng.randint(-3, 4, size + 3)).astype(np.float32) for _ in range(count)]
        want = parts[0].copy()
        for part in parts[1:]:
            want += part
        _core._sum_grads(members, parts, np.array([1, 0, 3], np.float32))
        assert members[0].grad_as_array()[0] == want[0] and not members[1].grad_as_array().any()
        assert np.array_equal(members[2].grad_as_array(), want[4098:size])
        _core._sum_grads(members, parts, np.array([1, 1, 1], np.float32))
        assert np.array_equal(members[1].grad_as_array(), want[1:4098])
    for wrong in (([parts[0]], np.ones(3)), ([parts[0], parts[1][: size - 1]], np.ones(3)), (parts, np.ones(2))):
        with pytest.raises(ValueError, match=r"_grads\] "):
            _core._sum_grads(members, wrong[0], wrong[1].astype(np.float32))


def packed(*tables: tuple[list[int], list[list[float]]]) -> Any:
    """What _core._pack_rows() writes, by its description."""
    parts = [
        np.concatenate(([len(ids)], ids)).astype(np.uint32).tobytes() + np.array(rows, np.float32).tobytes()
        for ids, rows in tables
    ]
    return np.frombuffer(b"".join(parts), np.uint8)


def test_rows_of_tables_as_bytes() -> None:
    m = dy.ParameterCollection()
    t, u, empty = m.add_lookup_parameters((5, 2)), m.add_lookup_parameters((3, 1)), m.add_lookup_parameters((3, 0))
    dy.renew_cg()
    (dy.sum_elems(t[4]) + dy.sum_elems(t[2]) * 3 + u[1]).backward()
    tables = [t, u, empty]
    out = np.zeros(_core._rows_size(tables), np.uint8)
    _core._pack_rows(tables, out)
    assert out.tobytes() == packed(([2, 4], [[3, 3], [1, 1]]), ([1], [[1]]), ([], [])).tobytes()
    with pytest.raises(ValueError, match="bytes are needed"):
        _core._pack_rows(tables, out[:-1])
    other = packed(([1, 4, 1], [[1, 2], [3, 4], [5, 6]]), ([], []), ([2], []))
    _core._set_rows(tables, [out, other])
    assert t.grad_as_array().tolist() == [[0, 0], [6, 8], [3, 3], [0, 0], [4, 5]]
    assert u.grad_as_array().tolist() == [[0], [1], [0]] and not empty.grad_as_array().size
    for wrong, message in [
        (packed(([5], [[0, 0]]), ([], []), ([], [])), "row 5 of a table with 5 rows"),
        (packed(([1], [[0, 0, 0]]), ([], []), ([], [])), "rows of other tables"),
        (packed(([1], [[0, 0]]), ([], [])), "rows of other tables"),
        (packed(([1 << 30], [])), "rows of other tables"),
        (out[:0], "rows of other tables"),
    ]:
        with pytest.raises(ValueError, match=message):
            _core._set_rows(tables, [out, wrong])
    assert t.grad_as_array()[1].tolist() == [6, 8]


def test_one_process_is_as_without_it() -> None:
    world = dy.distributed.init()
    assert (world.rank, world.size, world.share([1, 2, 3])) == (0, 1, [1, 2, 3])
    assert (world.local_rank, world.local_size, world.device(4), world.gather(5)) == (
        0,
        1,
        0,
        [5],
    ) and world.threads() >= 1
    assert world.first(lambda: 5) == 5 and world.sum([1, 2]).tolist() == [1, 2]
    world.agree(x=1)
    world.barrier()
    m = dy.ParameterCollection()
    w = m.add_parameters(1, init=1)
    inner = dy.SimpleSGDTrainer(m)
    trainer = dy.distributed.Trainer(inner)
    trainer.learning_rate = 0.5
    assert inner.learning_rate == 0.5
    w.set_grad(np.array([1.0]))
    trainer.update()
    assert w.as_array().tolist() == [0.5] and trainer.updates == 1
    with pytest.raises(TypeError, match="a trainer is needed; got int"):
        dy.distributed.Trainer(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="world: that of init\\(\\) is needed; got int"):
        dy.distributed.Trainer(inner, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="up to four numbers; got 5"):  # as with several ranks
        trainer.add_up(1, 2, 3, 4, 5)
    assert trainer.add_up(1, 2).tolist() == [[1, 2]]


def test_what_a_rank_knows_of_its_machine(ranks: Any) -> None:
    program = """
        import os
        import dynet_lite as dy
        world = dy.distributed.init()
        devices = [world.device(n) for n in (1, 2, 8)]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        assert world.threads() in (max(1, cores // 3), cores), world.threads()
        assert world.share(x for x in "abc") == ["abc"[world.rank]]
        names = world.gather({"rank": world.rank})
        assert [name["rank"] for name in names] == [0, 1, 2]
        try:
            world.device(0)
        except ValueError as error:
            assert "one accelerator at least; got 0" in str(error)
        os.write(1, f"{world.rank}: {world.local_rank} of {world.local_size}, {devices}\\n".encode())
    """
    assert sorted(ranks(3, program).stdout.splitlines()) == [
        "0: 0 of 3, [0, 0, 0]",
        "1: 1 of 3, [0, 1, 1]",
        "2: 2 of 3, [0, 0, 2]",
    ]


def test_mpi4py_is_not_imported_without_mpiexec(ranks: Any) -> None:
    program = "import sys, dynet_lite as dy; dy.distributed.init(); assert 'mpi4py' not in sys.modules"
    ranks(0, program)
