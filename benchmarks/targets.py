"""What dynet_lite is meant to reach: times as fast as DyNet's wheel with autobatching in the same run, one thread.

"must" is for the program as it stands in DyNet's API, "lead" for the idiomatic one; both count sentences per CPU
second at the sizes `base` and the task's own batch size. Printed beside what was measured.
"""

from __future__ import annotations

REFERENCE = "dynet:1"
MUST = {
    "tagger": 5.0,
    "tagger_char": 5.0,
    "treelstm": 2.4,
    "parser": 4.0,
    "rnnlm": 2.8,
    "rnnlm_hand": 1.8,
    "seq2seq": 4.0,
}
LEAD = {
    "tagger": 7.0,
    "tagger_char": 7.0,
    "treelstm": 3.0,
    "parser": 5.5,
    "rnnlm": 3.3,
    "rnnlm_hand": 2.0,
    "seq2seq": 6.0,
}
TORCH = 1.0  # ahead of PyTorch's padded batches
TWO_THREADS = 1.7  # wall time against one thread
ON_OVER_OFF = 0.95  # automatic batching may cost no more than 5 % anywhere
BATCH_ONE = 1.0  # at one sentence per update: against DyNet without autobatching
MEMORY = 1.0  # peak memory against DyNet's

# On a GPU, by wall time (on_a_gpu.py): times as fast as PyTorch item by item, as its padded batches, and as those of the
# LSTMs that cuDNN makes, from 256 units.
GPU_ONE, GPU_PADDED, GPU_CUDNN = 8.5, 1.0, 0.9
# Time of an H100 for one mini-batch of training, ms, as estimated before there was a GPU: its arithmetic at 40 TFLOP/s of
# FP32, its memory, and 2.6 us a launch. At most so many times as much is wanted.
GPU_MODEL = {
    ("tagger", 256): 1.2,
    ("tagger", 1024): 4.5,
    ("treelstm", 150): 0.33,
    ("treelstm", 1024): 3.8,
    ("seq2seq", 256): 2.2,
    ("seq2seq", 1024): 11.7,
}
GPU_OVER_MODEL = 2.0
