"""The kernels as a program for OpenCL, from the text that the GPU's compiler takes: clang, LLVM 14, SPIR 1.2.

clang compiles them as it compiles CUDA, but for a machine whose memory has no kinds. OpenCL's memory has: what was
declared as shared is moved to local memory here, an address in a record is one of global memory, and LLVM infers the
rest. A kernel's one argument is the address of its records, as a number.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from build import CEXT, HERE, run

LLVM = ["clang-14", "opt-14", "llvm-as-14"]
# Gives the address that kernels know a buffer by.
ADDRESS_OF = """
define spir_kernel void @dnl_address_of(i8 addrspace(1)* %buffer, i64 addrspace(1)* %to) #0
    !kernel_arg_addr_space !9000000 !kernel_arg_access_qual !9001000 !kernel_arg_type !9002000 !kernel_arg_base_type !9002000
    !kernel_arg_type_qual !9003000 {
  %n = ptrtoint i8 addrspace(1)* %buffer to i64
  store i64 %n, i64 addrspace(1)* %to
  ret void
}
!9000000 = !{i32 1, i32 1}
!9001000 = !{!"none", !"none"}
!9002000 = !{!"char*", !"ulong*"}
!9003000 = !{!"", !""}
!9010000 = !{i32 0}
!9011000 = !{!"none"}
!9012000 = !{!"ulong"}
!9013000 = !{!""}
"""
OF_KERNEL = (
    "!kernel_arg_addr_space !9010000 !kernel_arg_access_qual !9011000 !kernel_arg_type !9012000 !kernel_arg_base_type !9012000 "
    "!kernel_arg_type_qual !9013000"
)


def missing() -> str:
    """A program that is needed and not there; "" if all are."""
    return next((name for name in LLVM if shutil.which(name) is None), "")


def kernels() -> list[str]:
    text = (CEXT / "backends" / "cuda" / "kernels" / "list.h").read_text()
    return re.findall(r"^DNL_DEVICE_KERNEL\((\w+),", text, re.MULTILINE)


def program(folder: Path, cext: Path = CEXT) -> Path:
    """The program in LLVM's bitcode. cext: another copy of the source, with a mistake in it for instance."""
    text, ir, moved, out = (folder / f"kernels.{end}" for end in ("cu", "ll", "moved.ll", "bc"))
    text.write_text('#include "prelude.h"\n#include "all.h"\n#pragma clang force_cuda_host_device end\n')
    device = ["-triple", "spir64-unknown-unknown", "-aux-triple", "x86_64-unknown-linux-gnu", "-fcuda-is-device"]
    places = [f"-I{HERE}", f"-I{cext / 'backends' / 'cuda' / 'kernels'}", f"-I{cext}"]
    lines = ["-debug-info-kind=line-tables-only", "-dwarf-version=4"]
    command = ["clang-14", "-cc1", *device, "-x", "cuda", "-std=c++17", "-O2", "-mllvm", "-inline-threshold=1000000"]
    # A number that is read only where it is wanted must not be read before that is known.
    command += ["-mllvm", "-phi-node-folding-threshold=0", "-mllvm", "-two-entry-phi-node-folding-threshold=0"]
    run([*command, *lines, *places, "-emit-llvm", str(text), "-o", str(ir)])
    moved.write_text(with_kinds_of_memory(ir.read_text(), kernels()))
    infer = ["opt-14", "-passes=function(infer-address-spaces,instcombine)", "-assume-default-is-flat-addrspace"]
    for _ in range(3):  # what comes from a null pointer is clear only when the rest is
        run([*infer, "-S", str(moved), "-o", str(ir)])
        known = re.sub(
            r"^  (tail )?call void @llvm\.(assume|dbg|lifetime)\b.*\n", "", ir.read_text(), flags=re.MULTILINE
        )
        known = re.sub(r"= freeze (i\d+) ([^,\n]+)", r"= add \1 \2, 0", known)  # oclgrind does not know it
        known = re.sub(r"addrspacecast \(\S+\* null to [^()]*\(\d\)\*\)", "null", known)
        moved.write_text("\ndefine ".join(map(without_casts, known.split("\ndefine "))))
    run(["llvm-as-14", str(moved), "-o", str(out)])
    return out


def with_kinds_of_memory(ir: str, names: list[str]) -> str:
    """LLVM's text, with kernels, and with local, constant and global memory."""
    kernel = ""
    shared: dict[str, tuple[str, str]] = {}  # a variable: its type, its kind of memory
    own: dict[str, str] = {}  # a kernel's copy of one in local memory: its line

    def variable(match: re.Match[str]) -> str:
        name, how, what, kind, rest = match.groups()
        number = "3" if what == "global" else "2"
        shared[name] = kind, number
        if number == "3":
            return ""  # each kernel has its own, of the name that oclgrind looks for: kernel.name
        linkage = how.split()[0]
        return f"@{name} = {linkage} addrspace({number}) {what} {kind} {rest}"

    lines = []
    for line in ir.splitlines():
        line = line.replace(", comdat", "") if line.startswith("@") else line
        line = re.sub(
            r"^@([\w.$]+) = (.*?)\b(global|constant) (\[.*\]|%\S+|\w+) ((?:undef|zeroinitializer|c?\[).*)$",
            variable,
            line,
        )
        if line == "entry:" and lines[-1].startswith("  %records"):
            continue  # that of the kernel is there
        if match := re.match(r"define .*void @(\w+)\((\S+) (?:\w+ )*%records\)(.*) \{$", line):
            kernel = match[1]
            if kernel in names:
                lines += [f"define spir_kernel void @{kernel}(i64 %records.n){attributes(match[3])} {{", "entry:"]
                lines.append(f"  %records.g = inttoptr i64 %records.n to {pointer(match[2], 1)}")
                lines.append(f"  %records = addrspacecast {pointer(match[2], 1)} %records.g to {match[2]}")
                continue
        if not line.startswith("@"):
            line = re.sub(r"@([\w.$]+)", lambda m, kernel=kernel: used(m, kernel, shared, own), line)  # type: ignore[misc]
        if match := re.match(r"  (%\S+) = inttoptr i64 (\S+) to (.*?\*)(, .*)?$", line):
            name, number, kind, rest = match.groups()
            lines.append(f"  {name[:1]}g.{name[1:]} = inttoptr i64 {number} to {pointer(kind, 1)}{rest or ''}")
            line = f"  {name} = addrspacecast {pointer(kind, 1)} {name[:1]}g.{name[1:]} to {kind}{rest or ''}"
        lines.append(line)
    return "\n".join([*lines, *own.values()]) + ADDRESS_OF


def without_casts(function: str) -> str:
    """A function, whose pointers that are global memory's or null are of the type of global memory."""
    for name, kind, source in re.findall(
        r"^  (%\S+) = addrspacecast (\S+) addrspace\(1\)\* (%\S+) to \S+\*", function, re.MULTILINE
    ):
        cast = rf"^  {re.escape(name)} = addrspacecast [^,\n]*"
        same = f"  {name} = getelementptr {kind}, {kind} addrspace(1)* {source}, i64 0"  # numbers stay in order
        function = re.sub(cast, same, function, flags=re.MULTILINE)
        flat, far = re.escape(kind) + r"\*", f"{kind} addrspace(1)*"
        for result in re.findall(rf"^  (%\S+) = phi {flat} .*\[ {re.escape(name)},", function, re.MULTILINE):
            end = r"(?![\w.])"
            function = re.sub(rf"({re.escape(result)} = phi ){flat}", rf"\g<1>{far}", function)
            moved = [result]
            for pointer_there in moved:  # and addresses that are counted from it
                place = re.escape(pointer_there)
                function = re.sub(rf"{flat} {place}{end}", f"{far} {pointer_there}", function)
                counted = rf"^  (%\S+) = getelementptr (?:inbounds )?{re.escape(kind)}, {re.escape(far)} {place},"
                moved += re.findall(counted, function, re.MULTILINE)
                for either in re.findall(rf"^  (%\S+) = phi {flat} .*\[ {place},", function, re.MULTILINE):
                    function = re.sub(rf"({re.escape(either)} = phi ){flat}", rf"\g<1>{far}", function)
                    moved.append(either)
    return function


def attributes(text: str) -> str:
    """What stands between a kernel's arguments and its body, and OpenCL's part of it."""
    before, debug, number = text.replace(" local_unnamed_addr", "").partition(" !dbg")
    before = re.sub(r" comdat", "", before)
    return f"{before}{debug}{number} {OF_KERNEL}"


def pointer(kind: str, number: int) -> str:
    """The type of a pointer into another kind of memory."""
    return f"{kind[:-1]} addrspace({number})*"


def used(match: re.Match[str], function: str, shared: dict[str, tuple[str, str]], own: dict[str, str]) -> str:
    """A variable where a function uses it, as a pointer that may point anywhere."""
    if match[1] not in shared:
        return match[0]
    name, (kind, number) = match[1], shared[match[1]]
    if number == "3":
        name = f"{function}.{list(shared).index(name)}"
        own[name] = f"@{name} = internal addrspace(3) global {kind} undef, align 8"
    return f"addrspacecast ({kind} addrspace({number})* @{name} to {kind}*)"
