"""What surrounds a program changes no file and no number: a locale with a decimal comma, a home that cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import run_code

import dynet_lite as dy

PACKAGE = Path(dy.__file__).parents[1]

PROGRAM = """
import locale, sys
import numpy as np
import dynet_lite as dy
if len(sys.argv) > 1:
    locale.setlocale(locale.LC_ALL, sys.argv[1])
    assert locale.localeconv()["decimal_point"] == ","
dy.reset_random_seed(3)
m = dy.ParameterCollection()
E, W = m.add_lookup_parameters((30, 5)), m.add_parameters((4, 5))
lstm = dy.LSTMBuilder(1, 5, 5, m)
t = dy.AdamTrainer(m, 0.015)
for k in range(3):
    dy.renew_cg()
    h = lstm.initial_state().transduce([E[i] for i in range(4)])[-1]
    loss = dy.pickneglogsoftmax(W * dy.dropout(h * 1.5, 0.25), k)
    print(repr(loss.value()))
    print(dy.explain_batches() if k == 0 else dy.plan_text())
    loss.backward()
    t.update()
t.status()
m.save("model.txt")
dy.save_checkpoint("model.ckpt", m, t)
dy.save("pair", [E, W, lstm])
W.save("one.txt", "/w")
with open("vectors.txt", "w") as f:
    f.write("a 0.5 -1.25 3 1e-3 2\\nb 1 2 3 4 5.5\\n")
print({k: np.asarray(v).tolist() for k, v in dy.read_pretrained_embeddings("vectors.txt", dy.Dict()).items()})
other = dy.ParameterCollection()
E2, W2 = other.add_lookup_parameters((30, 5)), other.add_parameters((4, 5))
dy.LSTMBuilder(1, 5, 5, other)
other.populate("model.txt")
assert (E2.as_array() == E.as_array()).all() and (W2.as_array() == W.as_array()).all()
W2.populate("one.txt", "/w")
dy.load("pair", dy.ParameterCollection())
dy.load_checkpoint("model.ckpt", m, t)
"""


def run(folder: Path, *args: str, **environment: str) -> tuple[str, dict[str, bytes]]:
    """What a program prints, and the files that it leaves."""
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", PROGRAM, *args], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr, {p.name: p.read_bytes() for p in folder.iterdir()}


def with_comma(folder: Path) -> dict[str, str] | None:
    """Variables of a locale with a decimal comma: one that is there, or one made for the test."""
    program = "import locale, os; locale.setlocale(locale.LC_ALL, os.environ['LC_ALL']); print(locale.localeconv()['decimal_point'])"

    def works(**variables: str) -> bool:
        run = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True
        )
        return run.stdout.strip() == ","

    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "de-DE"):
        if works(LC_ALL=name):
            return {"LC_ALL": name}
    if shutil.which("localedef"):
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")], capture_output=True)
        if works(LC_ALL="de_DE.UTF-8", LOCPATH=str(folder)):
            return {"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(folder)}
    return None


def test_a_locale_with_a_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "locales").mkdir()
    comma = with_comma(tmp_path / "locales")
    if comma is None:
        pytest.skip("there is no locale with a decimal comma")
    wanted = run(tmp_path / "plain")
    given = run(tmp_path / "comma", comma["LC_ALL"], **comma)
    assert given[0] == wanted[0]
    assert given[1].keys() == wanted[1].keys()
    for name, data in wanted[1].items():
        assert given[1][name] == data, name


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """Nothing is looked for or left there."""
    home = tmp_path / "home"
    home.write_text("a file, so that not even the user root can make a folder in it")
    nowhere = {name: str(home / "x") for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    given = run(tmp_path / "here", **nowhere)
    wanted = run(tmp_path / "plain")
    assert given == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "home", "plain"]
    recipe = subprocess.run([sys.executable, "-m", "dynet_lite", "train", "dan_classifier", "--smoke"], cwd=tmp_path / "here",
                            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE), **nowhere})  # fmt: skip
    assert recipe.returncode == 0, recipe.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("when", ["before", "after_in_parent", "after_in_child"])
def test_functions_for_forks_may_read_weights(when, tmp_path):
    # Those that were registered before ours run while a fork is under way.
    program = f"""if True:
        import faulthandler, os
        import dynet_lite as dy
        faulthandler.dump_traceback_later(30, exit=True)
        p = dy.ParameterCollection().add_parameters(2)
        os.register_at_fork({when}=lambda: p.as_array())
        dy.sum_elems(p * 1.0).value()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        for _ in range(300):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                assert status == 0
                break
            __import__("time").sleep(0.1)
        else:
            os.kill(pid, 9)
            raise SystemExit("the child hangs")
    """
    done = run_code(program, tmp_path, 60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_standard_output_and_error_may_be_closed(tmp_path: Path) -> None:
    """As those of a service: what would be written there is not, and all else is done."""
    program = "import dynet_lite as dy; dy.AdamTrainer(dy.ParameterCollection()).status(); open('done', 'w').close()"
    for arguments in (["-m", "dynet_lite", "recipes", "copy", "xor"], ["-c", program]):
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&- 2>&-', sys.executable, *arguments], cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})  # fmt: skip
        assert done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["done", "xor.py"]
