#!/usr/bin/env bash
# Runs tests on the backend "apart", whose memory the host cannot reach (docs/engine/memory.md): what follows an address
# outside of a backend kills the run.
#
#   tests/apart.sh                        the op table, the engine, builders
#   tests/apart.sh -n 2 tests/recipes     other tests; arguments go to pytest
#
# Left out is a test of a process whose addresses are limited: this memory takes many, with nothing behind them.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests/ops tests/engine tests/builders
DYNET_LITE_BACKEND=apart exec "${PYTHON:-python}" -X faulthandler -m pytest -q \
  --deselect tests/engine/test_fusing.py::test_a_run_that_fails_is_tried_again "$@"
