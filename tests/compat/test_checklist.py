"""The checklist: every name of DyNet, and every method of its classes, is ours and documented, or stands here with a reason."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite.dynet_names import NAMES

EXCEPTIONS = {
    "ERRMSG": "a text inside DyNet's module",
    "print_function": "an import of DyNet's module",
    "SoftmaxBuilder": "not there yet",
    "StandardSoftmaxBuilder": "not there yet",
    "ClassFactoredSoftmaxBuilder": "not there yet",
    "ComputationGraph.inputMatrixLiteral": "DyNet's own way into inputTensorTranspose(); use that",
    "ComputationGraph.inputSparseTensor": "DyNet's own way into sparse_inputTensor(); use that",
    "inputTensorTranspose": "a function here: what it gives has the methods of every expression",
}
STAR_ONLY = {"np", "os", "pickle", "sys"}  # what `from dynet import *` brings, by way of compat.py

# Methods that DyNet's manual names; kept here so that they are checked where DyNet is not installed.
METHODS = {
    "Expression": "dim value scalar_value vec_value npvalue tensor_value forward backward gradient",
    "Parameters": "shape as_array grad_as_array set_value clip_inplace zero scale scale_gradient is_updated set_updated "
    "name expr save populate write_to_textfile populate_from_textfile",
    "LookupParameters": "batch init_from_array init_row shape as_array row_as_array rows_as_array grad_as_array "
    "row_grad_as_array rows_grad_as_array scale scale_gradient zero is_updated set_updated name save populate expr",
    "ParameterCollection": "add_parameters add_lookup_parameters parameters_from_numpy lookup_parameters_from_numpy "
    "add_subcollection parameters_list lookup_parameters_list parameter_count name save populate write_to_textfile "
    "populate_from_textfile load_param load_lookup_param get_weight_decay set_weight_decay set_weight_decay_lambda",
    "ComputationGraph": "renew version forward inc_forward forward_scalar forward_vec inc_forward_scalar inc_forward_vec "
    "backward print_graphviz dump checkpoint revert",
    "Tensor": "as_numpy argmax topk categorical_sample_log_prob",
    "RNNState": "add_input add_inputs transduce output h s set_h set_s prev b",
    "Trainer": "update set_clip_threshold get_clip_threshold set_sparse_updates learning_rate set_learning_rate restart "
    "status update_subset update_epoch",
    "BiRNNBuilder": "add_inputs transduce set_dropout disable_dropout",
    "DynetParams": "from_args from_config init set_mem set_random_seed set_autobatch set_profiling set_weight_decay "
    "set_shared_parameters set_requested_gpus set_gpu_mask set_cpu_mode",
    "CompactVanillaLSTMBuilder": "set_weightnoise",
    "SparseLSTMBuilder": "set_sparsity",
    **{
        name: "initial_state initial_state_from_raw_vectors get_parameters get_parameter_expressions param_collection "
        "set_dropout disable_dropout" + ("" if name == "FastLSTMBuilder" else " spec from_spec whoami")
        + (" set_dropouts set_dropout_masks" if name in ("SimpleRNNBuilder", "VanillaLSTMBuilder", "SparseLSTMBuilder",
                                                        "CompactVanillaLSTMBuilder") else "")
        for name in ("SimpleRNNBuilder", "GRUBuilder", "VanillaLSTMBuilder", "LSTMBuilder", "SparseLSTMBuilder",
                     "CoupledLSTMBuilder", "FastLSTMBuilder", "CompactVanillaLSTMBuilder")
    },
}  # fmt: skip


def check(name: str) -> None:
    """A name such as tanh or Parameters.shape exists and has a docstring."""
    holder, _, method = name.partition(".")
    item = getattr(dy, holder)
    if method:
        found = inspect.getattr_static(item, method, None)
        assert found is not None, f"{name} is missing"
        documented = inspect.getdoc(getattr(item, method)) or inspect.getdoc(found)
        documented = documented or any(getattr(getattr(base, method, None), "__doc__", None) for base in item.__mro__)
        assert documented, f"{name} has no docstring"
    elif callable(item):
        assert inspect.getdoc(item), f"{name} has no docstring"


@pytest.mark.parametrize("name", [n for n in NAMES if n not in EXCEPTIONS])
def test_name(name: str) -> None:
    check(name)
    assert name in dy.__all__


@pytest.mark.parametrize("name", [f"{c}.{m}" for c, ms in METHODS.items() for m in dict.fromkeys(ms.split())])
def test_method(name: str) -> None:
    check(name)


@needs_dynet
def test_the_module_itself() -> None:
    """All that the real module shows, with the methods of its classes."""
    found = run("""
out = {}
for n in dir(dy):
    if not n.startswith("_"):
        item = getattr(dy, n)
        out[n] = [m for m in dir(item) if not m.startswith("_")] if isinstance(item, type) else []
""")
    assert set(found) - STAR_ONLY - set(NAMES) - set(EXCEPTIONS) == set()
    assert set(NAMES) <= set(found), "dynet_names.py has a name that DyNet has not"
    for name, methods in found.items():
        if name in STAR_ONLY or name in EXCEPTIONS:
            continue
        check(name)
        for method in methods:
            if f"{name}.{method}" not in EXCEPTIONS:
                check(f"{name}.{method}")


def test_exceptions_are_exceptions() -> None:
    """A name that exists by now does not belong in the list."""
    for name in EXCEPTIONS:
        holder, _, method = name.partition(".")
        if name != "inputTensorTranspose":
            assert not hasattr(getattr(dy, holder, None), method) if method else not hasattr(dy, name), name


def test_every_name_is_in_a_test() -> None:
    """Each name occurs in some test file besides this one."""
    folder = Path(__file__).parents[1]
    text = "\n".join(p.read_text(encoding="utf-8") for p in folder.rglob("*.py") if p != Path(__file__))
    words = set(re.findall(r"\w+", text))
    assert {n for n in NAMES if n not in words and n not in EXCEPTIONS} == set()
