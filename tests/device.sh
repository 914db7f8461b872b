#!/usr/bin/env bash
# Everything that is known of the CUDA backend without a GPU (docs/engine/device.md):
#
#   tests/device.sh               what .ci/run runs: some minutes
#   tests/device.sh --all         all tests of the engine, builders, cells and ops with the GPU as their backend, and the
#                                 kernels compiled for every kind of GPU: an hour
#   tests/device.sh -k use        some tests; arguments go to pytest
#
# The op table, training, builders, recipes and the ways to ask for a GPU run on a stand-in for the driver; the kernels
# run through PoCL and in oclgrind where those are installed (apt: clang-14 llvm-14 pocl-opencl-icd oclgrind), and are
# skipped with a word where not. NVIDIA's compiler takes them for the oldest and the newest kind of GPU where it is
# installed (pip: nvidia-cuda-nvrtc-cu12). With the address sanitizer: tests/sanitize.sh tests/device/test_device.py.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}

architectures=(--arch sm_70 --arch sm_120)  # the oldest and the newest: half a minute each
if [ "${1:-}" = --all ]; then
  shift
  architectures=()
  export DYNET_LITE_TEST_ALL=1
fi
status=0
"$python" tools/device_image.py --check ${architectures[@]+"${architectures[@]}"} || status=$?
case $status in
  0) ;;
  3) echo "device code: not compiled, NVRTC is not installed" ;;
  *) exit "$status" ;;
esac
exec "$python" -m pytest -q -p no:cacheprovider -rs tests/device "$@"
