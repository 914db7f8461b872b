# cython: freethreading_compatible=False
# distutils: language=c++
"""The compiled core of dynet_lite: graphs, expressions, parameters and the functions of all ops.

Users import the package, not this module. Thin by rule: argument checks and conversions, no arithmetic.
"""
import copyreg
import dataclasses
import enum
import io
import itertools
import mmap
import os
import threading
import weakref

import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError
from cpython.iterator cimport PyIter_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport Py_TYPE, PyObject, PyObject_GenericSetAttr, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_New, PyTuple_SET_ITEM
from cpython.type cimport PyType_Check
from cpython.weakref cimport PyWeakref_NewRef
from cython.operator cimport dereference as deref
from libc.math cimport isfinite
from libc.string cimport memcmp, memcpy, memset
from libcpp.memory cimport make_shared, shared_ptr
from engine cimport *

from dynet_lite import errors as _errors, needs as _needs, pytorch_names as _pytorch_names

set_error_hook((ValueError, _errors.OutOfRangeError, _errors.StaleExpressionError, _errors.OutOfMemoryError,
                _errors.NotFiniteError, RuntimeError, _errors.InternalError))

include "user_line.pxi"
include "settings.pxi"
include "overlap.pxi"
include "trace.pxi"
include "memory.pxi"
include "graph.pxi"
include "current_graph.pxi"
include "convert.pxi"
include "pytorch.pxi"
include "comparing.pxi"
include "expression.pxi"
include "expression_list.pxi"
include "constants.pxi"
include "inputs.pxi"
include "params.pxi"
include "forms.pxi"
include "tables.pxi"
include "trainers.pxi"
include "trainer_fields.pxi"
include "reduce.pxi"
include "board.pxi"
include "dealing.pxi"
include "draws.pxi"
include "files.pxi"
include "ops.pxi"
include "cells.pxi"
include "states.pxi"
include "watched.pxi"
include "templates.pxi"
include "recording.pxi"
include "bulk.pxi"
include "call_lock.pxi"
include "compiled.pxi"
include "inspect.pxi"

# What the package offers of this module; the functions of ops come from their entries.
__all__ = ["ComputationGraph", "Expression", "LookupParameters", "Parameters", "cg", "constant", "inputTensor",
           "inputTensorTranspose", "inputVector", "lookup", "lookup_batch", "one_hot", "ones", "scalarInput",
           "sparse_inputTensor", "vecInput", "zeros"] + list(OP_NAMES)
