"""The error of the text side: a file or a corpus is missing or not what it should be. Sees nothing else."""


class DataError(ValueError):
    """A data file is malformed or a corpus is not there; the message is one line: where, and what to do."""
