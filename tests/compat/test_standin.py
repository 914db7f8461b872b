"""The stand-in: how a program finds us under DyNet's name, and that it cannot tell that it was started by us."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_dynet import python

QUIET = {"PYTHONWARNINGS": "error"}


def run(tmp_path: Path, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(code)
    return python("-m", "dynet_lite", "run", str(script), *arguments, **{**QUIET, **environment})


def output(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


ALL_NAMES_ARE_US = """
import dynet as dy
import _dynet
import dynet_config
from dynet import *
from _dynet import Expression as E
import dynet_lite
assert dy.Expression is _dynet.Expression is Expression is E is dynet_lite.Expression
assert dynet_config is dynet_lite.dynet_config
assert dy.cg() is _dynet.cg() is dynet_lite.cg()
m = Model()
p = m.add_parameters((2, 2), init=2)
e = p * dy.inputVector([1, 2])
assert isinstance(e, dy.Expression) and isinstance(p, dy.Parameters) and isinstance(p, _dynet.Expression)
assert isinstance(m.add_lookup_parameters((3, 2)), dy.LookupParameters) and isinstance(m, dy.ParameterCollection)
assert isinstance(dy.LSTMBuilder(1, 2, 2, m), dy.VanillaLSTMBuilder) and isinstance(AdamTrainer(m), dy.Trainer)
print(e.value())
"""


def test_install() -> None:
    done = python("-c", "import dynet_lite; dynet_lite.install_as_dynet()\n" + ALL_NAMES_ARE_US, **QUIET)
    assert output(done) == "[6.0, 6.0]"


def test_install_twice_and_too_late() -> None:
    code = """
import sys, types, dynet_lite
before = list(sys.path)
dynet_lite.install_as_dynet(); dynet_lite.install_as_dynet()
import dynet
dynet_lite.install_as_dynet()
assert len(sys.path) == len(before) + 1 and sys.path[0] == before[0]
sys.modules["_dynet"] = types.ModuleType("_dynet"); sys.modules["_dynet"].__file__ = "real.so"
try: dynet_lite.install_as_dynet()
except RuntimeError as error: print(error)
"""
    assert "_dynet is already imported from real.so" in output(python("-c", code, **QUIET))


def test_run(tmp_path: Path) -> None:
    assert output(run(tmp_path, ALL_NAMES_ARE_US)) == "[6.0, 6.0]"


def test_star_brings_the_names_of_dynet_and_no_others() -> None:
    code = """
import dynet_lite; dynet_lite.install_as_dynet()
before = set(globals())
from dynet import *
from dynet_lite.compat.names import NAMES, OF_DYNET_1
new = set(globals()) - before - {"before"}
assert {"np", "sys", "os", "pickle"} <= new          # DyNet's star brings them
assert new - {"np", "sys", "os", "pickle", "NAMES", "OF_DYNET_1"} <= {*NAMES, *OF_DYNET_1}
assert "config" not in new and "graph" not in new and "stats" not in new
import dynet
print(dynet.configure.__name__, hasattr(dynet, "nonsense"))
"""
    assert output(python("-c", code, **QUIET)) == "configure False"


def test_star_brings_functions_of_dynet_1() -> None:
    code = """
import dynet_lite; dynet_lite.install_as_dynet()
from dynet import *
cube_of = lambda x: tanh(cwise_multiply(cwise_multiply(x, x), x))
print("%.4f" % cube_of(scalarInput(0.5)).value())
try: conv1d_narrow(scalarInput(1), scalarInput(1))
except AttributeError as error: print(error)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0.1244\n[conv1d_narrow]") and "write conv2d" in done.stdout
    assert done.stderr.count("cwise_multiply is an old name") == 1


def test_a_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    code = """
import sys, os, argparse, pickle
import dynet as dy
parser = argparse.ArgumentParser()
parser.add_argument("--dynet-seed", type=int); parser.add_argument("-m"); parser.add_argument("rest", nargs="*")
a = parser.parse_args()
class Own: pass
assert isinstance(pickle.loads(pickle.dumps(Own())), Own)
assert sys.path[0] == os.path.dirname(os.path.abspath(__file__)) and __name__ == "__main__" and __spec__ is None
import beside
print(sys.argv[1:], a.dynet_seed, a.m, a.rest, dy.config.get("seed"))
"""
    (tmp_path / "beside.py").write_text("")
    done = run(tmp_path, code, "--dynet-seed", "3", "--dynet-mem=100", "-m", "x", "y")
    assert "unrecognized arguments: --dynet-mem=100" in done.stderr and done.returncode == 2  # argparse's own business
    done = run(tmp_path, code, "--dynet-seed", "3", "-m", "x", "y")
    assert output(done) == "['--dynet-seed', '3', '-m', 'x', 'y'] 3 x ['y'] 3"


def test_a_script_finds_itself_and_adds_builtins(tmp_path: Path) -> None:
    code = """
import os, sys
__builtins__.xrange = range             # as programs do that once were for Python 2
os.chdir("/")
print(os.path.samefile(__file__, os.path.join(sys.argv[1], "script.py")), list(xrange(2)))
"""
    (tmp_path / "script.py").write_text(code)
    start = "import os, runpy, sys; os.chdir(sys.argv[1]); sys.argv[1:] = ['run', 'script.py', sys.argv[1]]; "
    done = python("-c", start + "runpy.run_module('dynet_lite', run_name='__main__')", str(tmp_path), **QUIET)
    assert output(done) == "True [0, 1]"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there is no -P")
def test_paths_that_are_safe_stay_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys; print(sys.path)")
    paths = [_path(tmp_path / "own"), str(tmp_path / "other")]
    done = python(
        "-P", "-m", "dynet_lite", "run", str(tmp_path / "script.py"), PYTHONPATH=os.pathsep.join(paths), **QUIET
    )
    found = ast.literal_eval(output(done))
    assert found[0] == str(tmp_path / "own") and str(tmp_path) not in found


def test_flags_are_read_when_dynet_is_imported(tmp_path: Path) -> None:
    code = """
import sys
sys.argv += ["--dynet-seed", "17"]      # a common idiom
import dynet as dy
del sys.argv[1:]
print(dy.config.get("seed"))
"""
    assert output(run(tmp_path, code)) == "17"


def test_dynet_config_and_params(tmp_path: Path) -> None:
    code = """
import dynet_config
dynet_config.set(mem=32, random_seed=1234, autobatch=1)
dynet_config.set_gpu(False)
import dynet as dy
a = dy.ParameterCollection().add_parameters(3).as_array()
import _dynet
params = _dynet.DynetParams(); params.from_args(); params.set_random_seed(1234); params.set_mem(100); params.init()
assert (a == dy.ParameterCollection().add_parameters(3).as_array()).all()
_dynet.init()
print(dynet_config.get()["seed"])
"""
    assert output(run(tmp_path, code, "--dynet-seed", "9")) == "1234"


def test_traces_and_exit_codes(tmp_path: Path) -> None:
    done = run(tmp_path, "import dynet as dy\ndef f():\n    raise KeyError('here')\nf()\n")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and lines[-1] == "KeyError: 'here'"
    assert lines[1].strip() == f'File "{tmp_path / "script.py"}", line 4, in <module>'
    assert "dynet_lite" not in done.stderr
    done = run(tmp_path, "x = (\n")
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "compat.py" not in done.stderr
    assert run(tmp_path, "import sys; sys.exit(7)").returncode == 7
    done = run(tmp_path, "import sys; sys.exit('no')")
    assert done.returncode == 1 and done.stderr == "no\n"
    done = python("-m", "dynet_lite", "run", str(tmp_path / "missing.py"))
    assert done.returncode == 2 and "can't open" in done.stderr


def test_run_a_module(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, dynet\nprint(__name__, sys.argv[1:], dynet.Expression.__module__)"
    )
    done = python("-m", "dynet_lite", "run", "-m", "program", "--help", PYTHONPATH=_path(tmp_path))
    assert output(done) == "__main__ ['--help'] dynet_lite._core"


def _path(tmp_path: Path) -> str:
    import dynet_lite

    return os.pathsep.join([str(tmp_path), str(Path(dynet_lite.__file__).parents[1])])


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes_started_by_the_program(tmp_path: Path, start: str) -> None:
    code = f"""
import multiprocessing, subprocess, sys
import dynet as dy
def work(x):
    import dynet
    return dynet.Expression.__module__, dynet.scalarInput(x).value() * 2
if __name__ == "__main__":
    with multiprocessing.get_context("{start}").Pool(1) as pool:
        print(pool.map(work, [1, 2]))
    done = subprocess.run([sys.executable, "-c", "import _dynet; print(_dynet.Expression.__module__)"],
                          capture_output=True, text=True)
    print(done.stdout.strip())
"""
    where = "dynet_lite._core"
    assert output(run(tmp_path, code)) == f"[('{where}', 2.0), ('{where}', 4.0)]\n{where}"


def test_threads_share_one_graph() -> None:
    """As in DyNet: a program may begin a sentence in one thread and go on in another, as with a time limit for each."""
    code = """
import dynet_lite; dynet_lite.install_as_dynet()
from concurrent.futures import ThreadPoolExecutor
import dynet as dy
dy.reset_random_seed(1)
m = dy.ParameterCollection()
w = m.add_parameters((2, 2), init=2)
trainer = dy.SimpleSGDTrainer(m, 0.5)

def go_on(x):
    return dy.sum_elems(dy.concatenate([w * x, dy.zeros(1)]))

def elsewhere(f, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(f, *args).result(60)

for _ in range(2):
    elsewhere(dy.renew_cg)
    loss = elsewhere(go_on, dy.inputVector([1, 3]))
    print(loss.value(), end=" ")
    elsewhere(loss.backward)
    trainer.update()
print((go_on(dy.inputVector([1, 3])) + loss).value(), end=" ")
dy.reset_random_seed(5)
first = dy.renew_cg() and dy.random_normal((2,)).value()
elsewhere(dy.reset_random_seed, 5)
print((dy.renew_cg() and dy.random_normal((2,)).value()) == first)
"""
    assert output(python("-c", code, **QUIET)) == "16.0 6.0 12.0 True"


def test_threads_take_turns_in_one_graph() -> None:
    """As in DyNet, which keeps the interpreter's lock: whoever comes while another runs waits."""
    code = """
import dynet_lite; dynet_lite.install_as_dynet()
import sys, threading
import dynet as dy
sys.setswitchinterval(1e-6)
m = dy.ParameterCollection()
w = m.add_parameters((60, 60), init=0.01)
x = dy.inputVector([1] * 60)
sums, errors = [0.0] * 4, []

def work(k):
    try:
        for i in range(60):
            sums[k] += round(dy.sum_elems(w * (x * (k + 1))).value())
    except Exception as error:
        errors.append(repr(error))

threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sums, errors)
"""
    assert output(python("-c", code, **QUIET)) == "[2160.0, 4320.0, 6480.0, 8640.0] []"


def test_info() -> None:
    done = python("-m", "dynet_lite", "info", DYNET_LITE_SEED="5")
    assert done.returncode == 0 and done.stdout.startswith("dynet_lite ") and "seed: 5" in done.stdout
    # Who has named a device that is not there asks which ones there are.
    done = python("-m", "dynet_lite", "info", DYNET_LITE_DEVICE="cuda:999")
    assert done.returncode == 2 and "\ndevices:\n  cpu" in done.stdout
    assert done.stderr.startswith("error: [cuda] ") and done.stderr.count("\n") == 1
    for name, value in (("DYNET_LITE_THREADS", "x"), ("DYNET_LITE_ISA", "sse")):
        done = python("-m", "dynet_lite", "info", **{name: value})
        assert done.returncode == 2 and done.stdout.endswith("settings:\n")
        assert done.stderr.startswith(f"error: [config] {name}: ") and done.stderr.count("\n") == 1
    done = python("-m", "dynet_lite", "info", DYNET_LITE_STRATEGIE="depth", DYNET_LITE_HOME="x")
    (line,) = [line for line in done.stdout.splitlines() if "DYNET_LITE_" in line]
    assert line == "DYNET_LITE_STRATEGIE is set, but is not read: did you mean DYNET_LITE_STRATEGY?"


def test_a_bad_variable_is_one_line_for_every_command(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import dynet\n")
    model = str(tmp_path / "model")
    trained = python("-m", "dynet_lite", "train", "bilstm_tagger", "--smoke", "--save", model)
    assert trained.returncode == 0, trained.stderr
    commands = [("train", "bilstm_tagger", "--smoke"), ("train", "xor"), ("evaluate", "--load", model, model),
                ("compare", "bilstm_tagger", "--out", str(tmp_path)), ("serve", model),
                ("run", str(tmp_path / "script.py"))]  # fmt: skip
    for command in commands:
        done = python("-m", "dynet_lite", *command, DYNET_LITE_THREADS="abc")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (command, done.stderr)
        assert done.stderr.startswith("error: [config] DYNET_LITE_THREADS: a whole number"), (command, done.stderr)


def test_the_command_line_without_docstrings() -> None:
    done = python("-OO", "-m", "dynet_lite", "--help")
    assert done.returncode == 0 and "show versions, processor, matrix library and settings" in done.stdout


def test_subclasses(tmp_path: Path) -> None:
    code = """
import dynet as dy
class Collection(dy.ParameterCollection):
    def __init__(self, extra):
        super().__init__(); self.extra = extra
class Lstm(dy.VanillaLSTMBuilder):
    def __init__(self, layers, n_in, n_out, model):
        super().__init__(layers, n_in, n_out, model); self.seen = 0
    def transduce_one(self, x):
        self.seen += 1
        return self.initial_state().add_input(x).output()
class Sgd(dy.SimpleSGDTrainer):
    def update(self):
        super().update(); self.steps = getattr(self, "steps", 0) + 1
class Softer(dy.Model):
    pass
m = Collection(3)
builder = Lstm(1, 2, 3, m)
loss: dy.Expression = dy.sum_elems(builder.transduce_one(dy.inputVector([1, 2])))
def typed(e: "dy.Expression", p: "dy.Parameters", s: "dy.RNNState") -> "dy.Expression": return e
loss.backward()
trainer = Sgd(m, 0.1); trainer.update()
assert isinstance(m, dy.Model) and isinstance(Softer(), dy.ParameterCollection) and issubclass(Lstm, dy.LSTMBuilder)
assert isinstance(builder.initial_state(), dy.RNNState)
print(m.extra, builder.seen, trainer.steps, len(m.parameters_list()))
"""
    assert output(run(tmp_path, code)) == "3 1 1 3"


def test_old_paths_of_modules() -> None:
    """Programs and pickles name modules where they were before compat/ was there."""
    code = """
import pickle
import dynet_lite.dynet_config as config
import dynet_lite.words
from dynet_lite import dynet_names, old_names
from dynet_lite.compat import report, run, run_module
from dynet_lite.dynet_names import NAMES
from dynet_lite.old_names import FloatValue
from dynet_lite.words import Dict
import dynet_lite as dy
assert config is dy.dynet_config is dy.compat.dynet_config and NAMES is dynet_names.NAMES
assert dynet_lite.words.Dict is Dict is dy.Dict and FloatValue is dy.FloatValue is old_names.FloatValue
assert pickle.loads(b"cdynet_lite.words\\nDict\\n.") is Dict
assert isinstance(pickle.loads(pickle.dumps(Dict(["a"]))), Dict)
print("same")
"""
    assert output(python("-c", code, **QUIET)) == "same"
