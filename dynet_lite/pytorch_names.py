"""Names that programs written for PyTorch use and that are not here: who uses one is told what to write instead.

Of the module they are objects that raise when they are used, because a module with a __getattr__ finds all its names slowly.
Of classes they are descriptors, for which hasattr() is False. Neither slows down the names that exist.
Who may import: dynet_lite/__init__.py and the bindings.
"""

from __future__ import annotations

from typing import Any

PAGE = "docs/coming_from_pytorch.md"

LSTM = "write dy.LSTMBuilder(layers, input_dim, hidden_dim, model); dy.BiRNNBuilder for both directions"
LOSS = "write dy.pickneglogsoftmax(scores, label), then dy.average(losses)"
INPUT = "write dy.inputTensor(array), dy.inputVector(numbers)"
JOIN = "write dy.concatenate(xs), or dy.concatenate_cols(xs) for columns of a matrix"
SHAPE = "write dy.reshape(x, dims)"
BY_NAME = "write dy.AdamTrainer(model), dy.SimpleSGDTrainer(model) and others"

MODULE = {
    "Adam": BY_NAME,
    "AdamW": "write dy.AdamWTrainer(model)",
    "CrossEntropyLoss": LOSS,
    "Dropout": "write dy.dropout(x, p) while training; builders have set_dropout(p)",
    "Embedding": "write E = model.add_lookup_parameters((rows, size)), then E[i]",
    "GRU": "write dy.GRUBuilder(layers, input_dim, hidden_dim, model)",
    "LSTM": LSTM,
    "Linear": "write W, b = model.add_parameters((n_out, n_in)), model.add_parameters(n_out, init=0), then W * x + b",
    "Module": "write a class of your own; its parameters belong to a dy.ParameterCollection",
    "Parameter": "write model.add_parameters(dims)",
    "RNN": "write dy.SimpleRNNBuilder(layers, input_dim, hidden_dim, model)",
    "SGD": "write dy.SimpleSGDTrainer(model), dy.MomentumSGDTrainer(model)",
    "Sequential": "write a function of your own that calls one after the other",
    "as_tensor": INPUT,
    "bmm": "write x * y; batches are made by themselves",
    "cat": JOIN,
    "cross_entropy": LOSS,
    "from_numpy": INPUT,
    "manual_seed": "write dy.reset_random_seed(seed)",
    "mean": "write dy.average(xs) of a list, dy.mean_elems(x), dy.mean_dim(x, dims, False)",
    "mm": "write x * y",
    "mse_loss": "write dy.squared_distance(x, y)",
    "mul": "write dy.cmult(x, y)",
    "nll_loss": LOSS,
    "no_grad": "not needed, because no gradient is computed before backward() is called",
    "optim": BY_NAME,
    "rand": "write dy.random_uniform(dims, 0, 1)",
    "randn": "write dy.random_normal(dims)",
    "stack": "write dy.concatenate_cols(xs)",
    "squeeze": SHAPE,
    "sum": "write dy.esum(xs) of a list, dy.sum_elems(x), dy.sum_dim(x, dims)",
    "tensor": INPUT,
    "unsqueeze": SHAPE,
    "view": SHAPE,
}

CHECKPOINT = "write dy.save_checkpoint(file, model) and dy.load_checkpoint(file, model)"
MODES = "write dy.dropout only while training, and set_dropout(p) and disable_dropout() of builders"

COLLECTION = {
    "eval": MODES,
    "load_state_dict": CHECKPOINT,
    "named_parameters": "write model.parameters_list() and model.lookup_parameters_list(), whose items have name()",
    "parameters": "write model.parameters_list() and model.lookup_parameters_list()",
    "state_dict": CHECKPOINT,
    "train": MODES,
    "zero_grad": "not needed, because trainer.update() clears the gradients",
}

TRAINER = {
    "param_groups": "write trainer.learning_rate; a trainer of a sub-collection for a part of the model",
    "step": "write trainer.update()",
    "zero_grad": "not needed, because trainer.update() clears the gradients",
}


SAME = "not needed; dy.configure(device='cuda') chooses the GPU for everything"

EXPRESSION = {
    "cpu": "write x.npvalue() for its numbers",
    "cuda": SAME,
    "data": "write x.npvalue(); of a weight, as_array() and set_value(array)",
    "detach": "write dy.nobackprop(x); x.npvalue() for its numbers",
    "grad": "write x.gradient(); of a weight, grad_as_array()",
    "mean": "write dy.mean_elems(x), dy.mean_dim(x, dims, False)",
    "requires_grad": "write is_updated() and set_updated(False) of a weight",
    "requires_grad_": "write set_updated(False) of a weight; loss.backward(full=True) for the gradient of an input",
    "size": "write x.shape, x.batch_size",
    "squeeze": SHAPE,
    "sum": "write dy.sum_elems(x), dy.sum_dim(x, dims)",
    "to": SAME,
    "unsqueeze": SHAPE,
    "view": SHAPE,
}


def _core() -> Any:
    """The bindings, whose classes raise: compiled functions leave no line in a trace. They import this module first."""
    from dynet_lite import _core

    return _core


def listed(obj: object) -> list[str]:
    """dir() of an object without these names, for completion."""
    names, elsewhere = object.__dir__(obj), _core()._Elsewhere
    return [name for name in names if not isinstance(getattr(type(obj), name, None), elsewhere) or hasattr(obj, name)]


def mark(cls: type, table: dict[str, str]) -> None:
    """Gives a class the names of a table."""
    for name, instead in table.items():
        setattr(cls, name, _core()._Elsewhere(name, instead))
    cls.__dir__ = listed  # type: ignore[method-assign, assignment]


def missing() -> dict[str, Any]:
    """The names of the module, for its own dict."""
    return {name: _core()._Missing(name, instead) for name, instead in MODULE.items()}
