"""A script: reads programs as lines of JSON, [numbers, steps], runs them in DyNet and answers each with a line, what it saw."""

from __future__ import annotations

import json
import os
import sys

from fuzz_program import Step, execute, to_json

if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DyNet prints
    import dynet

    for line in sys.stdin:
        numbers, steps = json.loads(line)
        dynet.renew_cg()
        print(to_json(execute([Step(text) for text in steps], dynet, numbers)), file=answers, flush=True)
