"""Dynamic neural networks with automatic batching: DyNet's programming model on a modern engine.

    import dynet_lite as dy

The names are DyNet's. Importing does nothing else: settings are read at first use (see ``configure``).
"""

from types import ModuleType

from dynet_lite import _load  # isort: skip

if "__all__" in globals():  # importlib.reload: functions stand where the modules of their names are looked for
    globals().update(_load.submodules())

from dynet_lite import (
    _core,
    averages,
    builders,
    cell_builder,
    cells,
    checkpoint,
    compiled,
    config,
    distributed,
    embeddings,
    errors,
    explain,
    gpus,
    initializers,
    io,
    ops,
    ops_loss,
    ops_random,
    ops_segment,
    params,
    profiling,
    rewrites,
    softmax_builders,
    trained,
    trainers,
)
from dynet_lite import gradcheck as _gradcheck
from dynet_lite import graph as _graph
from dynet_lite import pytorch_names as _pytorch_names
from dynet_lite import summary as _summary
from dynet_lite import tensor as _tensor
from dynet_lite import told as _told
from dynet_lite._core import *  # noqa: F403
from dynet_lite.builders import *  # noqa: F403
from dynet_lite.cell_builder import *  # noqa: F403
from dynet_lite.cells import *  # noqa: F403
from dynet_lite.checkpoint import *  # noqa: F403
from dynet_lite.compat import dynet_config, install_as_dynet, old_names, words
from dynet_lite.compat import names as dynet_names  # noqa: F401  where it was once
from dynet_lite.compat.old_names import *  # type: ignore[assignment]  # noqa: F403  a class stands in for a function
from dynet_lite.compat.words import *  # noqa: F403
from dynet_lite.compiled import *  # noqa: F403
from dynet_lite.config import *  # noqa: F403
from dynet_lite.embeddings import *  # noqa: F403
from dynet_lite.errors import *  # noqa: F403
from dynet_lite.explain import *  # noqa: F403
from dynet_lite.gpus import *  # noqa: F403
from dynet_lite.gradcheck import *  # noqa: F403
from dynet_lite.graph import *  # noqa: F403
from dynet_lite.initializers import *  # noqa: F403
from dynet_lite.io import *  # noqa: F403
from dynet_lite.ops import *  # type: ignore[assignment]  # noqa: F403
from dynet_lite.ops_loss import *  # type: ignore[assignment]  # noqa: F403
from dynet_lite.ops_random import *  # noqa: F403
from dynet_lite.ops_segment import *  # noqa: F403
from dynet_lite.params import *  # noqa: F403
from dynet_lite.profiling import *  # noqa: F403
from dynet_lite.rewrites import *  # noqa: F403
from dynet_lite.softmax_builders import *  # noqa: F403
from dynet_lite.summary import *  # noqa: F403
from dynet_lite.tensor import *  # noqa: F403
from dynet_lite.trained import *  # noqa: F403
from dynet_lite.trainers import *  # noqa: F403

__version__ = "0.1.0"
__gitversion__ = ""
HAVE_CUDA = False

__all__ = ["HAVE_CUDA", "__gitversion__", "__version__", "config", "distributed", "dynet_config", "install_as_dynet"]
__all__ += _core.__all__
__all__ += builders.__all__
__all__ += gpus.__all__
__all__ += cell_builder.__all__
__all__ += cells.__all__
__all__ += compiled.__all__
__all__ += checkpoint.__all__
__all__ += config.__all__
__all__ += embeddings.__all__
__all__ += errors.__all__
__all__ += explain.__all__
__all__ += _gradcheck.__all__
__all__ += _graph.__all__
__all__ += initializers.__all__
__all__ += io.__all__
__all__ += old_names.__all__
__all__ += ops.__all__
__all__ += ops_loss.__all__
__all__ += ops_random.__all__
__all__ += ops_segment.__all__
__all__ += params.__all__
__all__ += profiling.__all__
__all__ += rewrites.__all__
__all__ += softmax_builders.__all__
__all__ += _summary.__all__
__all__ += _tensor.__all__
__all__ += trained.__all__
__all__ += trainers.__all__
__all__ += words.__all__
__all__ = list(dict.fromkeys(__all__))

globals().update(old_names.functions())
globals().update(_told.tell(
    averages, gpus, cells, checkpoint, compiled, config, embeddings, explain, initializers, io, old_names, ops,
    ops_loss, ops_random, ops_segment, params, profiling, rewrites, trained, trainers, words,
    _gradcheck, _graph, _summary, _tensor,
))  # fmt: skip

globals().update(_pytorch_names.missing())
_pytorch_names.mark(params.ParameterCollection, _pytorch_names.COLLECTION)
_pytorch_names.mark(trainers.Trainer, _pytorch_names.TRAINER)

# What a newcomer should see. The rest can be imported all the same: modules, and what only programs of DyNet ask for.
_unlisted = {*old_names.__all__, *old_names.functions(), *dynet_names.UNLISTED}
_listed = sorted(n for n in __all__ if n not in _unlisted and not isinstance(globals()[n], ModuleType))


def __dir__() -> list[str]:
    return _listed
