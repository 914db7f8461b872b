"""Networks as ONNX files: `export` traces a function of named inputs and writes its graph for ONNX runtimes.

    from dynet_lite import onnx

    onnx.export(network, "tagger.onnx", inputs={"words": onnx.Ids("n")}, outputs=["scores"])

Needs the extra `onnx` (pip install "dynet_lite[onnx]"), which is imported when it is used. docs/onnx.md has the layout of the
tensors, what sequences can do, and a program that predicts without this package.
"""

from dynet_lite import told as _told

from .attention import attend, waves
from .export import OPSET, export, export_recipe
from .graphs import chosen, heard
from .loops import scan
from .recursion import recurse
from .steps import step
from .symbolic import Children, Ids, Input, Sequence, lookup
from .table import REFUSED
from .trees import tree
from .writer import Unsupported

__all__ = [
    "OPSET",
    "REFUSED",
    "Children",
    "Ids",
    "Input",
    "Sequence",
    "Unsupported",
    "attend",
    "chosen",
    "export",
    "export_recipe",
    "heard",
    "lookup",
    "recurse",
    "scan",
    "step",
    "tree",
    "waves",
]

globals().update(export=_told.told(export, "onnx"))
