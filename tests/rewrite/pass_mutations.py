#!/usr/bin/env python
"""Do the checks of passes fail when a pass loses a condition? Takes them away one at a time, and looks for a failure.

    python tests/rewrite/pass_mutations.py              all of them: some minutes
    python tests/rewrite/pass_mutations.py merge join   those of these passes; "all" is what they share

Works on copies in build/pass-mutations. A mutation that no check of its pass notices is an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rewrite_program import CEXT, compile_all, link, sources

OUT = CEXT.parent / "build" / "pass-mutations"


@dataclass
class Mutation:
    """A piece of a file in cext/ that is replaced by another; "all": of what every pass uses."""

    name: str
    what: str
    old: str
    new: str = ""
    place: str = ""

    @property
    def file(self) -> str:
        return self.place or f"rewrite/rules/{self.name}.cc"


M = Mutation
MUTATIONS = [
    M("dead", "what was seen before goes", "if (i < r.unseen()) return false;"),
    M("dead", "what is held goes", "n.readers || n.handles ||", "n.readers ||"),
    M("dead", "the op of an output stays", ".is(kOutput) ? g.node(args[j]).producer : args[j];", ".is(kOutput) ? i : args[j];"),
    M("dead", "a part that nobody reads", "kDead;\n  leave_parts(i);", "kDead;", "rewrite/rewriter.cc"),
    M("merge", "ops that are held", "if (g.node(i + o).handles) return;", "if (o > 9) return;"),
    M("merge", "rows that are held", "if (g.node(i).handles) continue;"),
    M("merge", "random ops", "if (sig.has_seed) return;"),
    M("merge", "members of chains", " || worth_[i - from_] || !fusible(g.signature(i));", " || true;"),
    M("merge", "parts that are read", " || op_def(g.signature(i).op).in_parts"),
    M("merge", "a part that nobody reads", "  leave_parts(i);\n  forget_uses(i);\n  for", "  forget_uses(i);\n  for", "rewrite/rewriter.cc"),
    M("merge", "few projections", "return all >= kMany && ", "return "),
    M("merge", "between lanes", "empty();\n  again_.clear();", "again_.clear();"),
    M("loss", "scores that others read", "if (!r.absorbable(scores, loss)) return false;"),
    M("loss", "a computed bias", "g.signature(bias).leaf != Leaf::Param || "),
    M("loss", "a computed matrix", "if (!g.arg_shared(s, affine) || ", "if ("),
    M("loss", "a second bias", "\n        map->bias != kNoNode)", "\n        false)"),
    M("loss", "inside a cell", "!r.graph().node(i).is(kInner) && "),
    M("sum", "products run with others", " && !read_often_[r.graph().node(a).sig]"),
    M("sum", "products that others read", ".dim && r.absorbable(a, of);", ".dim;"),
    M("sum", "one product among others", " || (maps_.size() == 1 && others_.size() > 1)) return bias;", ") return bias;"),
    M("sum", "long rows", "if (size.maps && size.row_maps) keep_maps(", "if (false) keep_maps("),
    M("sum", "too many terms", "sig.nargs <= kMostTerms;", "sig.nargs <= 2 * kMostTerms;"),
    M("attention", "a held tanh", "!r.absorbable(tanh, product) || "),
    M("attention", "a held sum", "!r.absorbable(sum, tanh) || "),
    M("attention", "another function", " || g.signature(tanh).op != tanh_"),
    M("attention", "weights", "if (g.node(keys).is(kWeight) || g.node(query).is(kWeight)) return false;"),
    M("attention", "a computed row", " || !g.arg_shared(g.node(product).sig, 0)"),
    M("attention", "the other order", "if (!g.dim(query).is_vector()) std::swap(keys, query);"),
    M("join", "the same map twice", "if (alike && has(g, s, i)) return;"),
    M("join", "unlike ops", "s.op == mine.op && "),
    M("join", "no gradient", "alike && same_need && ", "alike && "),
    M("join", "computed matrices", "g.arg_shared(s, j) && g.node(g.shared_arg(s, j)).is(kLeaf);", "g.arg_shared(s, j);"),
    M("join", "the depth of a sum", "r.lift(s.leader, depth);"),
    M("join", "a value that is gone", "r.hide_value(s.leader);"),
    M("join", "between lanes", "std::fill(recent_, recent_ + kRecent, kNoNode);", "if (siblings_.empty()) std::fill(recent_, recent_ + kRecent, kNoNode);"),
    M("join", "maps that others read", "r.absorbable(i, chains.root(c)) && ", "i >= r.first() && "),
    M("join", "a gradient over a value", "if (is_part(p, operand)) r.keep", "if (false) r.keep",
      "rewrite/rules/fuse.cc"),
    M("join", "a single map", "if (p.steps == 1 && !p.in_parts) return false;", "", "rewrite/rules/fuse.cc"),
    M("fuse", "what others read", "if (!r.absorbable(a, i)) continue;", "if (a < r.first()) continue;"),
    M("fuse", "inside a cell", "!r.graph().node(i).is(kInner) && "),
    M("fuse", "more steps than fit", "steps + under.steps > fused::kMaxSteps || "),
    M("fuse", "an input once more", "if (inputs_[p.input + k].node == i) return k;", "static_cast<void>(k);"),
    M("concat", "what is held", "if (!r.hidden(i)) return false;"),
    M("concat", "nothing looked up", "return looked_up;", "return looked_up || true;"),
    M("concat", "short parts", " || part.size() < kLeastPart * part.bd"),
    M("concat", "many parts", "sig.nargs > kMostParts || "),
    M("concat", "a signature in two", "\n  keep_whole_signatures(g, lane);"),
    M("concat", "another reader", " && reads_[r.at(x)] == r.graph().readers(x);", ";"),
    M("layer", "a held map", "!r.absorbable(map, i) || "),
    M("layer", "a held concatenation", "!r.absorbable(parts, map) || "),
    M("layer", "other functions", " || !kind.reads_value_only"),
    M("layer", "inside a cell", " || g.node(i).is(kInner)"),
    M("layer", "several vectors", " || g.nargs(map) != 3"),
    M("layer", "computed weights", " || !r.kind(map).maps"),
    M("layer", "many parts", " || n > kMostParts"),
    M("layer", "mini-batches", " || g.dim(i).bd != 1"),
    M("layer", "a signature in two", "maps.in_layers == maps.all;", "maps.all;"),
    M("layer", "two functions", "maps.function == g.node(l.of).sig && ", ""),
    M("layer", "other parts", " && maps.parts == g.node(l.parts).sig", ""),
    M("bundle", "lists that others read", " && r.absorbable(a, of);", ";"),
    M("bundle", "mini-batches in a list", "g.nargs(a) == elements && "),
    M("bundle", "other ops", "if (!takes(sig.op) || ", "if ("),
    M("bundle", "what is no list", "return g.signature(a).op == list_ && ", "return "),
    M("all", "uses of what runs inside", "n.offset = into;\n  forget_uses(i);", "n.offset = into;", "rewrite/rewriter.cc"),
    M("all", "other lanes", " && same_lane(i, into);", " && into != kNoNode;", "rewrite/rewriter.h"),
    M("all", "before a checkpoint", "return i >= first_ && g_.is_op(i) &&", "return g_.is_op(i) &&", "rewrite/rewriter.h"),
    M("all", "what is held", "n.is(kCounted) && n.handles == 0 &&", "n.is(kCounted) &&", "rewrite/rewriter.h"),
]  # fmt: skip


def failures(program: Path, name: str) -> list[str]:
    """The checks of a pass that fail."""
    checks = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    some = [check for check in checks if name in ("all", check.split("/")[0])]
    return [check for check in some if subprocess.run([program, check], capture_output=True, timeout=60).returncode]


def noticed(cxx: str, mutation: Mutation, objects: dict[Path, Path]) -> bool:
    source = CEXT / mutation.file
    text = source.read_text()
    if text.count(mutation.old) != 1:
        print(f"{mutation.name}: {mutation.file} no longer has one place that reads\n    {mutation.old}")
        return False
    tree = OUT / "mutated"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(CEXT / "rewrite", tree / "rewrite")
    (tree / mutation.file).write_text(text.replace(mutation.old, mutation.new))
    header = source.suffix == ".h"
    of_rewrite = [path for path in objects if path.is_relative_to(CEXT / "rewrite") and (header or path == source)]
    (tree / "objects").mkdir()
    made = compile_all(cxx, [tree / path.relative_to(CEXT) for path in of_rewrite], tree / "objects", tree)
    rest = [obj for path, obj in objects.items() if path not in of_rewrite]
    found = failures(link(cxx, [*rest, *made.values()], tree / "program"), mutation.name)
    print(f"{mutation.name}, {mutation.what}: {', '.join(found) or 'NOT NOTICED'}", flush=True)
    return bool(found)


def main() -> int:
    """The exit status: 0 if each was noticed, and nothing fails without any."""
    sys.path.insert(0, str(CEXT.parent / "tests"))
    from cxx import compiler

    cxx = compiler()
    if cxx is None:
        print("needs a C++ compiler", file=sys.stderr)
        return 2
    names = sys.argv[1:] or sorted({m.name for m in MUTATIONS})
    (OUT / "objects").mkdir(parents=True, exist_ok=True)
    objects = compile_all(cxx, sources(), OUT / "objects")
    if found := failures(link(cxx, objects.values(), OUT / "program"), "all"):
        print(f"fail without any: {', '.join(found)}")
        return 1
    tried = [noticed(cxx, mutation, objects) for mutation in MUTATIONS if mutation.name in names]
    return int(not tried or not all(tried))


if __name__ == "__main__":
    sys.exit(main())
