#!/usr/bin/env bash
# Runs tests on the backend "apart", whose memory the host cannot reach (docs/engine/memory.md): what follows an address
# outside of a backend kills the run.
#
#   tests/apart.sh                        the op table, the engine, builders
#   tests/apart.sh -n 2 tests/recipes     other tests; arguments go to pytest
#
# Left out are tests that state what the CPU alone does: heap calls, rows copied for a BLAS, calls dealt to threads.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests/ops tests/engine tests/builders
DYNET_LITE_BACKEND=apart exec "${PYTHON:-python}" -X faulthandler -m pytest -q "$@"
