"""`python -m dynet_lite compare recipes/X.py`: one recipe, automatic batching on and off, at several batch sizes.

Measures speed, batches against the lower bound, batch sizes and time by op, memory, and whether the losses agree; writes
a table, a page that stands alone, the numbers as JSON and, with matplotlib, a picture. `import dynet_lite` does not import
this package.
"""

from .cli import main
from .measure import Comparison, Measurement, Way, compare
from .report import table

__all__ = ["Comparison", "Measurement", "Way", "compare", "main", "table"]
