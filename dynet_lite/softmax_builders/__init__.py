"""Softmax builders: output layers over many classes, with DyNet's names and parameters."""

from dynet_lite.softmax_builders.base import SoftmaxBuilder
from dynet_lite.softmax_builders.class_factored import ClassFactoredSoftmaxBuilder
from dynet_lite.softmax_builders.hierarchical import HierarchicalSoftmaxBuilder
from dynet_lite.softmax_builders.standard import StandardSoftmaxBuilder

__all__ = [
    "ClassFactoredSoftmaxBuilder",
    "HierarchicalSoftmaxBuilder",
    "SoftmaxBuilder",
    "StandardSoftmaxBuilder",
]
