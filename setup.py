"""Build of the one extension module, dynet_lite._core.

What it does: writes the generated wrappers and Cython's C++ under build/, compiles every cext/**/*.cc (found by
glob), links them and copies the OpenBLAS of the scipy-openblas32 wheel into the package, where cext/kernels/blas.cc
finds it, so that the installed package needs no system BLAS. Objects are compiled in parallel and only when the
source, a header it includes or the command has changed. Metadata is in pyproject.toml.

Switches (environment):
  DYNET_LITE_SANITIZE=1  address and undefined-behaviour sanitizers (run with LD_PRELOAD=$(gcc -print-file-name=libasan.so))
  DYNET_LITE_SANITIZE=thread   the thread sanitizer (libtsan.so)
  DYNET_LITE_DEBUG=1     Cython's index checks on, -O1 -g, asserts on, bounds of the engine's arrays checked (sanitized builds, too)
  DYNET_LITE_WERROR=1    warnings of our own files are errors (.ci/run sets it)
  DYNET_LITE_JOBS=N      compile N files at once (default: the number of processors)
  DYNET_LITE_BLAS=system link the BLAS of this machine instead of copying that of the wheel
  DYNET_LITE_GPU_KERNELS=1     compile the kernels for all NVIDIA GPUs into the package (wheels do; it needs NVRTC, two minutes and no GPU)
  DYNET_LITE_HOME=URL    the address of the repository, for the links of the package; workflows know it (GITHUB_REPOSITORY)
  _PYTHON_HOST_PLATFORM  the platform to compile for, where it is another one (tools/wheel.sh, cibuildwheel)
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CEXT = ROOT / "cext"
GENERATED = ROOT / "build" / "generated"

SANITIZE = os.environ.get("DYNET_LITE_SANITIZE", "0") not in ("", "0")
DEBUG = os.environ.get("DYNET_LITE_DEBUG", "0") not in ("", "0")
WERROR = os.environ.get("DYNET_LITE_WERROR", "0") not in ("", "0")
SYSTEM_BLAS = os.environ.get("DYNET_LITE_BLAS") == "system"
SANITIZERS = "thread" if os.environ.get("DYNET_LITE_SANITIZE") == "thread" else "address,undefined"
SANITIZED = "sanitize-thread" if SANITIZERS == "thread" else "sanitize"
VARIANT = SANITIZED if SANITIZE else "debug" if DEBUG else "release"
# The library that is copied into the package. A range: a version that is withdrawn does not break builds from source.
BLAS_WHEEL = "scipy-openblas32>=0.3.29,<0.4"

GPUS = os.environ.get("DYNET_LITE_GPU_KERNELS", "0") not in ("", "0")
GPU_COMPILER = "nvidia-cuda-nvrtc-cu12>=12.8,<13"  # only to build with GPUS

# The one place for Cython's directives; DYNET_LITE_DEBUG turns the checks back on.
DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "binding": True,
    "boundscheck": DEBUG,
    "wraparound": DEBUG,
    "initializedcheck": DEBUG,
    "cdivision": not DEBUG,
    "nonecheck": DEBUG,
}

DATA = (".conllu", ".ptb", ".sst", ".iob", ".md")  # of data/treebank: what recipes read, and where it comes from

# Not sysconfig's platform: on a Mac that may name two processors.
PLATFORM = (os.environ.get("_PYTHON_HOST_PLATFORM") or platform.machine()).lower()
X86 = PLATFORM.endswith(("x86_64", "amd64"))
# No -march=native and no fast-math: results must not depend on the machine that built the package.
GCC_FLAGS = ["-std=c++17", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-math-errno",
             "-fno-trapping-math", "-Wall", "-Wextra"]  # fmt: skip
GCC_ISA_FLAGS = {
    "isa_avx2.cc": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "isa_avx512.cc": ["-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mavx2", "-mfma", "-mf16c", "-mbmi",
                      "-mbmi2", "-mprefer-vector-width=512",
                      # gcc 12 takes its own header's "any value" vectors for a mistake (GCC bug 105593)
                      "-Wno-uninitialized", "-Wno-maybe-uninitialized"],
}  # fmt: skip
# Of clang-cl.
MSVC_FLAGS = ["/std:c++17", "/O2", "/fp:precise", "/EHsc", "/W3", "/DNOMINMAX"]
MSVC_ISA_FLAGS = {"isa_avx2.cc": ["/arch:AVX2"], "isa_avx512.cc": ["/arch:AVX512"]}


def is_idle(name):
    """Is it a file of kernels that do not run here?"""
    return name.startswith("isa_") and not may_run(name[len("isa_") :].partition(".")[0])


def may_run(isa):
    """May the kernels of this file run here? Not if DYNET_LITE_ISA names others, nor AVX-512 on a Linux that has none."""
    asked = os.environ.get("DYNET_LITE_ISA")
    about = Path("/proc/cpuinfo")
    has = isa != "avx512" or not about.exists() or "avx512bw" in about.read_text()
    return has and asked in (None, "", isa)


def sources():
    return sorted(CEXT.rglob("*.cc"))


def leave_frames_out(cpp):
    """Frames of compiled functions are no part of a trace, unless cext/bindings/user_line.h says so. Where an exception is
    caught Cython needs one."""
    place = re.compile(r'^( *)(__Pyx_AddTraceback\("[^;]*;)(?!\s*if \(__Pyx_GetException)', re.MULTILINE)
    text, count = place.subn(r"\1if (dnl::shows_frames()) \2", cpp.read_text())
    if not count:
        raise SystemExit("setup.py: Cython adds frames to traces in another way than it used to")
    cpp.write_text(text)


def sha(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else str(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def depfile_inputs(path):
    """The files a make-style dependency file names (escaped spaces understood), or None when there is none."""
    try:
        text = path.read_text()
    except OSError:
        return None
    text = text.replace("\\\n", " ").replace("\\ ", "\0")
    return [word.replace("\0", " ") for word in text.split(":", 1)[-1].split()]


def device_code():
    """dynet_lite/device_code.py, without the package around it, which is not built yet."""
    spec = importlib.util.spec_from_file_location("dnl_device_code", ROOT / "dynet_lite" / "device_code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def device_images(code):
    """With GPUS: the kernels for every kind of GPU, compiled unless they lie in build/ already."""
    if not GPUS:
        return {}
    folder = ROOT / "build" / "device" / sha(*(f"{name}\0{text}" for name, text in sorted(code.source().items())))[:24]
    files = {arch: folder / code.name_of(arch) for arch in (*code.ARCHITECTURES, code.PTX_FOR)}
    missing = [arch for arch, path in files.items() if not path.exists()]
    nvrtc = code.find_compiler() if missing else None
    if missing and nvrtc is None:
        raise SystemExit(f"setup.py: DYNET_LITE_GPU_KERNELS=1 needs NVIDIA's compiler: pip install '{GPU_COMPILER}'")

    def make(arch):
        print(f"device code for {arch}", flush=True)
        image, _ = code.compiled(nvrtc, arch)
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / (arch + ".tmp")
        partial.write_bytes(image)
        os.replace(partial, files[arch])

    with ThreadPoolExecutor(int(os.environ.get("DYNET_LITE_JOBS", 0)) or os.cpu_count()) as pool:
        list(pool.map(make, missing))
    return {path.name: path for path in files.values()}


class BuildPackage(build_py):
    """The package's own files, and beside them the recipes and their data: dynet_lite/recipes, dynet_lite/data; and
    the kernels for GPUs, as source and, with GPUS, compiled: dynet_lite/device.

    In a source tree they stay where they are, and dynet_lite/harness/catalogue.py finds them there.
    """

    def _beside(self):
        package = Path(self.build_lib) / "dynet_lite"
        files = [
            *(ROOT / "recipes").glob("*.py"),
            *(p for p in (ROOT / "data" / "treebank").iterdir() if p.suffix in DATA),
        ]
        code = device_code()
        of_gpus = [(path, Path("source") / name) for name, path in code.source_files().items()]
        of_gpus += [(path, Path("images") / name) for name, path in device_images(code).items()]
        return [(path.relative_to(ROOT), package / path.relative_to(ROOT)) for path in sorted(files)] + [
            (path.relative_to(ROOT), package / "device" / name) for path, name in of_gpus
        ]

    def run(self):
        super().run()
        if not self.editable_mode:
            for source, target in self._beside():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode=1):
        beside = [] if self.editable_mode else [str(target) for _, target in self._beside()]
        return super().get_outputs(include_bytecode) + beside

    def get_source_files(self):
        made = str(Path("build") / "device")
        return super().get_source_files() + [str(s) for s, _ in self._beside() if not str(s).startswith(made)]


class BuildCore(build_ext):
    def get_source_files(self):
        keep = (".cc", ".h", ".inc", ".pyx", ".pxd", ".pxi", ".py")
        return [str(p.relative_to(ROOT)) for p in sorted(CEXT.rglob("*")) if p.suffix in keep]

    def finalize_options(self):
        super().finalize_options()
        if not self.parallel:
            self.parallel = int(os.environ.get("DYNET_LITE_JOBS", 0)) or os.cpu_count() or 1

    def run(self):
        super().run()
        if self.inplace:  # a build in the source tree keeps the stub that is in git up to date
            self.generator.write_stub(ROOT)
        if not SYSTEM_BLAS:
            self.copy_blas(Path(self.build_lib) / "dynet_lite" if not self.inplace else ROOT / "dynet_lite")

    def get_outputs(self):
        package = Path(self.build_lib) / "dynet_lite"
        blas = [] if SYSTEM_BLAS else [str(self.blas_target(package)), str(self.licence_target(package))]
        return super().get_outputs() + blas

    def get_output_mapping(self):
        mapping = dict(super().get_output_mapping())
        if self.inplace and not SYSTEM_BLAS:
            built, here = Path(self.build_lib) / "dynet_lite", Path("dynet_lite")
            mapping[str(self.blas_target(built))] = str(self.blas_target(here))
            mapping[str(self.licence_target(built))] = str(self.licence_target(here))
        return mapping

    # ---- the steps of the build, in order ------------------------------------------------------------------

    def build_extension(self, ext):
        # Relative to the root: commands, and so the stamps, do not depend on where the tree lies.
        os.chdir(ROOT)
        self.msvc = self.compiler.compiler_type == "msvc"
        self.need_a_compiler()
        if self.msvc:
            self.take_clang()
        self.system_blas = self.find_system_blas() if SYSTEM_BLAS else []
        self.objects_dir = Path(self.build_temp) / VARIANT
        self.of_standard_library = self.standard_headers() if SANITIZE else []
        found = [p.relative_to(ROOT) for p in sources()]
        with ThreadPoolExecutor(max(1, int(self.parallel))) as pool:
            # Kernels take longest; the first of them are compiled while Cython works.
            jobs = [pool.submit(self.compile_one, p, False) for p in found if p.name.startswith("isa_")]
            jobs.append(pool.submit(self.compile_one, self.cythonize_core(ext), True))
            jobs += [pool.submit(self.compile_one, p, False) for p in found if not p.name.startswith("isa_")]
            results = [job.result() for job in jobs]
        target, objects = Path(self.get_ext_fullpath(ext.name)), sorted((obj for obj, _ in results), key=Path)
        if SANITIZE:  # of an inline function the linker keeps the first copy: not one that is not looked at
            objects.sort(key=lambda obj: Path(obj).stem == "_core" or is_idle(Path(obj).name))
        self.link(ext, target, objects, any(fresh for _, fresh in results))

    def command(self, name):
        """compiler_so or linker_so with its flags, as it is called for C++; None of MSVC. CXX, CXXFLAGS and LDFLAGS are in it."""
        return getattr(self.compiler, name + "_cxx", None) or getattr(self.compiler, name, None)

    def need_a_compiler(self):
        """Ends with one sentence where there is none; of MSVC distutils itself says so."""
        command = self.command("compiler_so")
        if not self.msvc and command and not shutil.which(command[0]):
            raise SystemExit(f"setup.py: building dynet_lite from source needs a C++17 compiler, and {command[0]!r} was not found: "
                             "install one (Debian: g++; Fedora: gcc-c++; macOS: xcode-select --install) or name it in CXX")  # fmt: skip

    def take_clang(self):
        """On Windows: clang-cl in the place of cl, for which the vectors of the kernels (cext/kernels/simd_*.h) are not written."""
        usual = Path(os.environ.get("ProgramFiles", "C:/Program Files")) / "LLVM" / "bin" / "clang-cl.exe"
        found = shutil.which("clang-cl") or (str(usual) if usual.exists() else None)
        if found is None:
            raise SystemExit("setup.py: building dynet_lite from source on Windows needs clang-cl, and it was not found: install LLVM, or "
                             'the component "C++ Clang tools for Windows" of Visual Studio, and put it on the PATH')  # fmt: skip
        if not self.compiler.initialized:
            self.compiler.initialize()
        self.compiler.cc = found

    def find_system_blas(self):
        """The arguments that link a BLAS with C's interface: the first that a small program can be linked with."""
        ways = [["-framework", "Accelerate"]] if PLATFORM.startswith("macosx") or sys.platform == "darwin" else []
        ways += [[f"-l{name}"] for name in ("openblas", "flexiblas", "cblas", "blis", "blas")]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "blas.cc"
            source.write_text('extern "C" void cblas_sgemm();\nint main() { cblas_sgemm(); }\n')
            for way in ways:
                command = [
                    *self.compiler.compiler_cxx,
                    str(source),
                    "-o",
                    str(Path(folder) / "blas"),
                    *self.library_options(),
                    *way,
                ]
                if not self.msvc and subprocess.run(command, capture_output=True).returncode == 0:
                    print(f"system BLAS: {' '.join(way)}")
                    return way
        raise SystemExit("setup.py: DYNET_LITE_BLAS=system found no BLAS with the C interface (cblas_sgemm): install one (Debian: "
                         "libopenblas-dev; Fedora: openblas-devel), or leave the variable out to use the one that comes as a wheel")  # fmt: skip

    def library_options(self):
        return [*(f"-L{folder}" for folder in self.compiler.library_dirs), *shlex.split(os.environ.get("LDFLAGS", ""))]

    def generate_wrappers(self):
        """cext/bindings/generate.py, when there, writes ops.pxi and the like into build/generated."""
        GENERATED.mkdir(parents=True, exist_ok=True)
        script = CEXT / "bindings" / "generate.py"
        if not script.exists():
            return
        spec = importlib.util.spec_from_file_location("dnl_generate", script)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        module.generate(CEXT / "ops", GENERATED)
        self.generator = module

    def cythonize_core(self, ext):
        """Run Cython when a .pyx, .pxd or .pxi, a header beside them, the directives or Cython itself changed; returns the C++ file."""
        import Cython
        from Cython.Build import cythonize

        self.generate_wrappers()
        pyx = Path("cext/bindings/_core.pyx")
        if not pyx.exists():
            raise SystemExit("setup.py: cext/bindings/_core.pyx is missing")
        inputs = [p for folder in (CEXT, GENERATED) for p in sorted(folder.rglob("*.p[yx][xdi]"))]
        inputs += sorted((CEXT / "bindings").glob("*.h"))  # Cython copies them; the C++ file includes the copies
        key = sha("frames left out", Cython.__version__, sorted(DIRECTIVES.items()), *[p.read_bytes() for p in inputs])
        out_dir = Path("build") / "cython" / ("debug" if DEBUG else "release")  # the directives depend on that alone
        stamp = out_dir / "stamp"
        cpp = out_dir / pyx.with_suffix(".cpp")
        if cpp.exists() and stamp.exists() and stamp.read_text() == key:
            return cpp
        stamp.unlink(missing_ok=True)  # a failing Cython leaves a file that says so
        include = [str(GENERATED), "cext/bindings"]
        modules = cythonize([Extension(ext.name, [str(pyx)], language="c++")], build_dir=str(out_dir), force=True,
                            include_path=include, compiler_directives=DIRECTIVES, annotate=False)  # fmt: skip
        produced = Path(modules[0].sources[0])
        if produced != cpp and produced.resolve() != cpp.resolve():
            shutil.move(str(produced), str(cpp))
        leave_frames_out(cpp)
        stamp.write_text(key)
        return cpp

    def flags_for(self, source, is_wrapper):
        name = source.name
        if self.msvc:
            return MSVC_FLAGS + (MSVC_ISA_FLAGS.get(name, []) if X86 else [])
        flags = list(GCC_FLAGS)
        never_runs = SANITIZE and is_idle(name)  # and would take minutes
        if X86 and not never_runs:
            flags += GCC_ISA_FLAGS.get(name, [])
        if never_runs:
            flags += ["-O0", "-g0"]
        elif SANITIZE:
            # With -O1 the checks of undefined behaviour take three times as long to compile; kernels need it.
            optimize = "-O1" if name.startswith("isa_") else "-O0"
            flags += [optimize, "-g1", f"-fsanitize={SANITIZERS}", "-fno-omit-frame-pointer"]
        elif DEBUG:
            flags += ["-O1", "-g"]
        else:
            flags += ["-O3", "-g0"]
        if SANITIZE or DEBUG:
            flags += ["-UNDEBUG", "-DDNL_CHECKED"]
        flags += ["-DDNL_SYSTEM_BLAS"] if SYSTEM_BLAS and name == "blas.cc" else []
        if is_wrapper:
            flags += ["-w"]  # Cython's output is not ours to tidy
            if SANITIZE:  # nor to take minutes: addresses only, and nobody steps through it
                flags += ["-g0", f"-fno-sanitize={'all' if SANITIZERS == 'thread' else 'undefined'}"]
        elif WERROR:
            flags += ["-Werror"]
        return flags

    def standard_headers(self):
        """Flags that let the compiler read the standard library once: without optimization that is half of its work."""
        header = self.objects_dir / "standard.h"
        done = header.with_suffix(".h.gch")
        if not done.exists():
            header.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CEXT / "base" / "standard.h", header)
            command = [*self.command("compiler_so"), *self.flags_for(header, False), "-x", "c++-header"]
            subprocess.run([*command, str(header), "-o", str(done)], check=True)
        return ["-include", str(header)]

    def compile_one(self, source, is_wrapper):
        """Compile one file unless its object is up to date. Returns (object, whether it was compiled)."""
        flags = self.flags_for(source, is_wrapper)
        if not is_wrapper and not source.name.startswith("isa_"):
            flags += self.of_standard_library
        include = ["cext"] + list(self.compiler.include_dirs)
        obj = Path(self.compiler.object_filenames([str(source)], output_dir=str(self.objects_dir))[0])
        stamp, depfile = obj.with_suffix(".json"), obj.with_suffix(".d")
        command = self.command("compiler_so") or [self.compiler.compiler_type]
        key = sha(json.dumps([list(command), flags, include]))
        if self.up_to_date(source, obj, stamp, depfile, key):
            return str(obj), False
        obj.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        extra = flags if self.msvc else flags + ["-MMD", "-MF", str(depfile)]
        # include_dirs of the compiler are added by compile() itself.
        self.compiler.compile([str(source)], output_dir=str(self.objects_dir), include_dirs=["cext"],
                              extra_postargs=extra)  # fmt: skip
        stamp.write_text(key)
        return str(obj), True

    def up_to_date(self, source, obj, stamp, depfile, key):
        if self.force or not obj.exists() or not stamp.exists() or stamp.read_text() != key:
            return False
        inputs = depfile_inputs(depfile)
        if inputs is None:  # a compiler without dependency files: any header may matter
            inputs = [str(source)] + [str(p) for p in CEXT.rglob("*.h")]
        built = obj.stat().st_mtime
        try:
            return all(os.stat(p).st_mtime < built for p in inputs)
        except OSError:
            return False

    def link(self, ext, target, objects, anything_new):
        dirs, libs = list(self.compiler.library_dirs), []
        if (
            sys.platform == "win32" and not SYSTEM_BLAS
        ):  # elsewhere OpenBLAS is loaded at run time (cext/kernels/blas.cc)
            import scipy_openblas32

            lib = scipy_openblas32.get_library()
            libs.append(lib[3:] if lib.startswith("lib") and not self.msvc else lib)
            dirs.insert(0, scipy_openblas32.get_lib_dir())
        stamp = Path(self.build_temp) / (target.name + ".link")  # one for all variants: they share the target
        linker = [self.command("compiler_so"), self.command("linker_so")]
        key = sha(json.dumps([objects, linker]), *libs, *self.system_blas, str(target), VARIANT)
        if not (anything_new or self.force) and target.exists() and stamp.exists() and stamp.read_text() == key:
            return
        args = list(self.system_blas)
        if sys.platform != "darwin" and not self.msvc:
            args += ["-Wl,--exclude-libs,ALL", "-ldl", "-lpthread"]
            args += [] if DEBUG or SANITIZE else ["-Wl,--strip-debug"]
        if SANITIZE:
            args += [f"-fsanitize={SANITIZERS}"]
        target.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        target.unlink(missing_ok=True)  # else distutils thinks a newer library of another variant will do
        self.compiler.link_shared_object(objects, str(target), libraries=libs, library_dirs=dirs,
                                         extra_postargs=args, export_symbols=self.get_export_symbols(ext),
                                         build_temp=str(self.objects_dir), target_lang="c++")  # fmt: skip
        stamp.write_text(key)

    # ---- the BLAS that travels with the package ---------------------------------------------------------------

    def blas_source(self):
        # Not imported: it would load the library, which may be that of another processor.
        package = importlib.util.find_spec("scipy_openblas32")
        if package is None or package.origin is None:
            raise SystemExit("setup.py: building needs scipy-openblas32 (pip install it), or DYNET_LITE_BLAS=system")
        folder = Path(package.origin).parent
        endings = {"win32": ".dll", "darwin": ".dylib"}
        ending = endings.get(sys.platform, ".so")
        found = sorted(p for p in folder.rglob("*openblas*") if p.name.endswith(ending) or ending + "." in p.name)
        if not found:
            raise SystemExit(f"setup.py: no OpenBLAS library in {folder}")
        return found[0]

    def blas_licence(self):
        """The licences that must travel with the library: OpenBLAS's, LAPACK's, libgfortran's."""
        files = importlib.metadata.files("scipy_openblas32") or []
        found = [Path(str(f.locate())) for f in files if f.name.startswith("LICENSE")]
        if not found:
            raise SystemExit(
                "setup.py: scipy-openblas32 came without its licence, which has to travel with the library"
            )
        return found[0]

    def licence_target(self, package):
        return package / ".libs" / "LICENSE-OpenBLAS.txt"

    def blas_target(self, package):
        # Windows looks for a DLL beside the module that needs it; elsewhere cext/kernels/blas.cc looks in .libs.
        return (package if sys.platform == "win32" else package / ".libs") / self.blas_source().name

    def copy_blas(self, package):
        source, target = self.blas_source(), self.blas_target(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        same = target.exists() and target.stat().st_size == source.stat().st_size
        if not same or target.stat().st_mtime < source.stat().st_mtime:
            partial = target.with_name(target.name + ".tmp")
            shutil.copyfile(source, partial)
            os.replace(partial, target)
        licence = self.licence_target(package)
        licence.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.blas_licence(), licence)


def home():
    """The address of the repository, "" if it is not known: the one that the workflow runs in, or DYNET_LITE_HOME."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return os.environ.get("DYNET_LITE_HOME") or (f"{server}/{repository}" if server and repository else "")


def project_urls():
    pages = {
        "Source": "",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Documentation": "/tree/main/docs",
        "Issues": "/issues",
    }
    return {name: home() + path for name, path in pages.items()} if home() else {}


def long_description():
    """The README. Its links to files lead into the repository, if its address is known."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    return re.sub(r"\]\((?!https?:|#)", f"]({home()}/blob/main/", text) if home() else text


setup(
    # Here and not in pyproject.toml: a build that links the system's library needs no wheel of it. What asks (pip) installs it.
    setup_requires=([] if SYSTEM_BLAS or importlib.util.find_spec("scipy_openblas32") else [BLAS_WHEEL])
    + ([GPU_COMPILER] if GPUS and device_code().find_compiler() is None else []),
    ext_modules=[Extension("dynet_lite._core", sources=[])],
    cmdclass={"build_ext": BuildCore, "build_py": BuildPackage},
    project_urls=project_urls(),
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
