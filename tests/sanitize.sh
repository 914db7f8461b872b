#!/usr/bin/env bash
# Builds the engine with the address and undefined-behaviour sanitizers, beside the normal build, and runs tests on it:
#
#   tests/sanitize.sh                       the op table, the engine, the kernels
#   tests/sanitize.sh -n 2 tests/builders   other tests; arguments go to pytest
#   tests/sanitize.sh --thread              the thread sanitizer: lanes, overlapped steps, graphs in several threads
#
# Needs gcc on Linux and, in the Python that PYTHON names (default python), what `pip install ".[test]"` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}

if [ "${1:-}" = --thread ]; then
  shift
  # Not those that fork: a child of a process with threads is more than the sanitizer can follow.
  [ $# -gt 0 ] || set -- tests/engine/test_overlap.py tests/engine/test_shared_gradients.py tests/engine/test_call_parts.py \
    tests/engine/test_transposes.py tests/engine/test_waiting.py tests/engine/test_back_again.py -k "not fork and not process"
  out=build/sanitize-thread
  export DYNET_LITE_SANITIZE=thread OPENBLAS_NUM_THREADS=1  # NumPy's own threads are not seen in full, and reported
  preload=$(gcc -print-file-name=libtsan.so)
  rm -f "$PWD/$out"/report.*
  export TSAN_OPTIONS=halt_on_error=1:exitcode=66:log_path=$PWD/$out/report:${TSAN_OPTIONS:-}
else
  [ $# -gt 0 ] || set -- tests/ops tests/engine tests/kernels
  out=build/sanitize
  export DYNET_LITE_SANITIZE=1
  # A library that an exception passes through must be there before the sanitizer looks for it.
  preload=$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libstdc++.so.6)
  # Python itself leaks by design; impossible sizes must come back as an error, as they do without the sanitizer; a crash is
  # reported by the sanitizer, not by the handler of Python.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=2:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}
fi

"$python" setup.py -q build --build-base "$out" --build-lib "$out/lib"
unset DYNET_LITE_SANITIZE
export DYNET_LITE_TEST_INSTALLED=1 DYNET_LITE_TEST_SANITIZE=1 PYTHONPATH=$PWD/$out/lib PYTHONMALLOC=malloc

exec env LD_PRELOAD="$preload" "$python" -m pytest -q -p no:cacheprovider "$@"
