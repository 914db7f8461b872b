# What stands for PyTorch's names (dynet_lite/pytorch_names.py): who uses one is told what to write.

class _Elsewhere:
    """A name of PyTorch's in a class: hasattr() is False, and who reads it is told what to write."""

    def __init__(self, name, instead):
        self._name, self._instead = name, instead

    def __repr__(self):
        return f"<not here: {self._instead}>"

    def __get__(self, obj, cls):
        if obj is None:  # help() and dir() look at the class
            return self
        raise AttributeError(f"[{cls.__name__}] {self._name} is not here, unlike in PyTorch: {self._instead} "
                             f"({_pytorch_names.PAGE})")


class _Missing:
    """A name of PyTorch's module: to call it, derive from it, enter it or read a name of it raises AttributeError."""

    def __init__(self, name, instead):
        self.__name__, self.__doc__ = name, f"A name of PyTorch's that is not here: {instead}."
        self._words = f"[{name}] is not here, unlike in PyTorch: {instead} ({_pytorch_names.PAGE})"

    def _tell(self, *args, **kwargs):
        raise AttributeError(self._words)

    __call__ = __enter__ = __mro_entries__ = _tell

    def __getattr__(self, name):
        raise AttributeError(name if name.startswith("_") else self._words)
