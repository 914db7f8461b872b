// Fused nodes: the steps of a program (op/fused.h), one after another on tiles that stay in the nearest cache.
//
// Only the inputs and the value go through memory. The results of the steps between are made again in the backward
// pass, as far as gradients read them. The kernels are those of the single ops, so values and gradients are the same to
// the last bit.
#include "op/fused.h"
#include "ops/fused_text.h"

#include <algorithm>
#include <cstring>

#include "kernels/formula_info.h"
#include "kernels/kernels.h"

namespace dnl {
namespace {

using fused::is_step;
using fused::kMaxInputs;
using fused::kMaxSteps;
using fused::Needs;
using fused::Program;
using fused::Step;

static_assert(fused::kReadsFirst == kReadsX && fused::kReadsSecond == kReadsV && fused::kReadsResult == kReadsY);

// ---- the program ---------------------------------------------------------------------------------------------------

// The shape of the inputs.
ShapeOut input_shape(const ShapeIn& in, const Word* parts) {
  in.need(in.nargs >= 1 && in.nargs <= static_cast<int>(kMaxInputs), "1 to 16 arguments are needed");
  if (parts[0].i == 0) {
    for (int j = 1; j < in.nargs; ++j) in.need(in[j] == in[0], "all shapes must be equal");
    return in[0];
  }
  const u32 inputs = fused::count_inputs(parts, in.nargs);
  in.need(parts[0].u % 2 == 1 && inputs >= 1 && inputs <= kMaxInputs && parts[1].i > 0,
          "parts are their size, and for each the argument and the place in it");
  const u64 size = parts[1].u;
  for (u32 k = 0; k < inputs; ++k) {
    const Word *arg = parts + 2 + 2 * k, *at = arg + 1;
    in.need(arg->i >= 0 && arg->i < in.nargs && at->i >= 0, "there is no such argument");
    in.need(in[arg->i].is_vector() && in[arg->i].bd == 1 && at->u + size <= in[arg->i].rows(),
            "a part reaches beyond its argument");
  }
  ShapeOut out = Dim{parts[1].u};
  out.partial = true;
  return out;
}

ShapeOut fused_shape(const ShapeIn& in) {
  const i32 n = in.key[0].i;
  in.need(n >= 1 && n <= static_cast<i32>(kMaxSteps), "a program has 1 to 24 steps");
  const Word* parts = in.key + 1 + n;
  const ShapeOut out = input_shape(in, parts);
  const u32 inputs = fused::count_inputs(parts, in.nargs);
  u32 read = 0;  // results that a later step has read, a bit each
  auto known = [&](u32 operand, i32 k) {
    if (!is_step(operand)) return operand < inputs;
    const u32 at = operand - kMaxInputs;
    if (at >= static_cast<u32>(k) || read >> at & 1u) return false;
    read |= 1u << at;
    return true;
  };
  for (i32 k = 0; k < n; ++k) {
    const Step s = Step::of(in.key[1 + k].u);
    in.need(s.word() == in.key[1 + k].u && s.formula < (s.binary ? kernels().n_binary : kernels().n_unary),
            "there is no such formula");
    in.need(known(s.a, k) && (!s.binary || known(s.b, k)), "a step reads what is not there, or was read before");
    if (!s.over) continue;
    in.need(!s.binary && !is_step(s.a) && k + 1 < n && parts[0].u && kernels().unary[s.formula].reads == kReadsY,
            "a result lies over a part of an argument, and only where the gradient reads the result alone");
  }
  in.need(read == (1u << (n - 1)) - 1u, "a result is read by nobody");
  return out;
}

void check_constants(const ShapeIn& in, const Word* member) {
  int wanted = 0;
  for (i32 k = 0; k < in.key[0].i; ++k) wanted += fused::count_constants(Step::of(in.key[1 + k].u), kernels());
  in.need(member[0].i == wanted, "as many constants are needed as the formulas have");
}

// ---- tiles --------------------------------------------------------------------------------------

// A piece of the batch: `rows` whole members from `member` on, or a part of one member's row.
struct Tile {
  int member, rows;
  idx at, n;  // of a part: where it begins; floats in all
};

// How a batch is cut into tiles of at most `most` floats. Members are put together when that is of use: short rows, or
// rows that lie one behind the other; those with constants of their own are not.
struct Tiles {
  const Call& c;
  const idx size;
  int together = 1;  // members
  idx floats;        // in the largest tile

  Tiles(const Call& call, idx most) : c(call), size(static_cast<idx>(c.out_size())) {
    constexpr idx kLong = 96;  // floats from which on a row is worth calls of its own
    bool apart = c.member || !c.y[0].packed(size);
    for (int j = 0; j < c.nargs && size >= kLong; ++j) apart |= !c.x[j].packed(size);
    if (!apart) together = static_cast<int>(std::max<idx>(1, std::min<idx>(most / size, c.members)));
    floats = std::min(most, together * size);
  }
  template <class F>
  void each(F f) const {
    for (int m = 0; m < c.members; m += together) {
      const int rows = std::min(together, c.members - m);
      if (rows * size <= floats) {
        f(Tile{m, rows, 0, rows * size});
      } else {
        for (idx at = 0; at < size; at += floats) f(Tile{m, 1, at, std::min(floats, size - at)});
      }
    }
  }
};

// Where a tile's rows lie, when they lie one behind the other; else null. `part`: where in a row they begin.
float* in_place(const Rows& r, const Tile& t, idx size, idx part = 0) {
  return t.rows == 1 || r.packed(size) ? r[t.member] + part + t.at : nullptr;
}

// The rows of a tile that lie here and there, to a buffer or back.
void from_rows(const Rows& r, const Tile& t, idx size, idx part, float* to) {
  if (!r.ptr) {
    kernels().copy_rows(t.rows, size, Rows{r.base + t.member * r.stride + part, r.stride, nullptr},
                        Rows{to, size, nullptr});
    return;
  }
  for (int m = 0; m < t.rows; ++m) copy(size, r.ptr[t.member + m] + part, to + m * size);
}
void to_rows(const float* from, const Tile& t, idx size, idx part, bool acc, const Rows& r) {
  for (int m = 0; m < t.rows; ++m) {
    float* to = r[t.member + m] + part;
    if (acc)
      kernels().add(size, from + m * size, to);
    else
      copy(size, from + m * size, to);
  }
}

const float* constants(const Call& c, const Tile& t) { return c.member ? &c.member[t.member][1].f : nullptr; }

// The program on one tile.
struct Worker {
  const Call& c;
  const Program program;
  const idx size;
  const Tiles tiles;
  float* result[kMaxSteps];  // by step
  float* input_buffer[kMaxInputs];
  float* input[kMaxInputs];
  const float* a = nullptr;  // the constants

  // `per_step`: buffers of a tile's size that are needed for each.
  Worker(const Call& call, idx per_step)
      : c(call),
        program(call, kernels()),
        size(static_cast<idx>(call.out_size())),
        tiles(call, most(program, per_step)) {
    std::fill(input_buffer, input_buffer + kMaxInputs, nullptr);
  }
  static idx most(const Program& p, idx per_step) {
    constexpr idx kNearest = 10240;  // floats that stay in the nearest cache
    const idx fit = kNearest / (per_step * p.n + p.inputs);
    return std::min<idx>(512, std::max<idx>(64, fit & ~idx(15)));
  }

  // Buffers stand close together: the nearest cache has few places for what lies at round distances.
  float* buffer() const { return c.scratch->alloc(static_cast<std::size_t>(tiles.floats)); }
  const float* value(u32 operand) const { return is_step(operand) ? result[operand - kMaxInputs] : input[operand]; }

  void read(const Tile& t) {
    a = constants(c, t);
    for (u32 j = 0; j < program.inputs; ++j) {
      const Program::Input& from = program.input[j];
      input[j] = in_place(c.x[from.arg], t, size, from.at);
      if (input[j]) continue;
      if (!input_buffer[j]) input_buffer[j] = buffer();
      from_rows(c.x[from.arg], t, size, from.at, input_buffer[j]);
      input[j] = input_buffer[j];
    }
    for (u32 k = 0; k < program.n; ++k)
      if (program.step[k].over) result[k] = input[program.step[k].a];
  }
  // A result over an input that was read from a copy.
  void put_back(u32 k, const Tile& t) const {
    const Step& s = program.step[k];
    if (!s.over || input[s.a] != input_buffer[s.a]) return;
    const Program::Input& in = program.input[s.a];
    to_rows(input[s.a], t, size, in.at, false, c.x[in.arg]);
  }
  const float* constants_of(u32 k) const { return a ? a + program.constant[k] : nullptr; }
  void run(u32 k, idx n, float* y) const {
    const Step& s = program.step[k];
    if (s.binary)
      kernels().binary[s.formula].fwd(n, value(s.a), 1, value(s.b), 1, y, constants_of(k));
    else
      kernels().unary[s.formula].fwd(n, value(s.a), y, constants_of(k));
  }
};

void fused_forward(const Call& c) {
  Worker w(c, 1);
  const u32 last = w.program.n - 1;
  for (u32 k = 0; k < last; ++k) w.result[k] = w.program.step[k].over ? nullptr : w.buffer();
  w.tiles.each([&](const Tile& t) {
    w.read(t);
    for (u32 k = 0; k < last; ++k)
      if (!c.restore || w.program.step[k].over) w.run(k, t.n, w.result[k]);
    if (!c.restore) w.run(last, t.n, in_place(c.y[0], t, w.size));
    for (u32 k = 0; k < last; ++k) w.put_back(k, t);
  });
}

// ---- backward -----------------------------------------------------------------------------------

// The gradient of one input in one tile: where the kernels write it, and whether there is something already.
struct Target {
  float* at = nullptr;
  bool acc = false;
  bool apart = false;  // in a buffer: the rows lie here and there
};

void fused_backward(const Call& c) {
  Worker w(c, 2);
  const Program& p = w.program;
  const Needs needs(c, p);
  const u32 last = p.n - 1;
  if (!needs.wanted[last]) return;
  float *gradient[kMaxSteps], *target_buffer[kMaxInputs] = {};
  for (u32 k = 0; k < last; ++k) {
    w.result[k] = p.step[k].over ? nullptr : w.buffer();
    gradient[k] = needs.wanted[k] ? w.buffer() : nullptr;
  }

  w.tiles.each([&](const Tile& t) {
    w.read(t);
    for (u32 k = 0; k < last; ++k)
      if (needs.value[k] && !p.step[k].over) w.run(k, t.n, w.result[k]);
    w.result[last] = in_place(c.y[0], t, w.size);
    gradient[last] = in_place(c.dy[0], t, w.size);

    Target target[kMaxInputs];
    for (u32 j = 0; j < p.inputs; ++j) {
      const Program::Input& in = p.input[j];
      if (!c.dx[in.arg].wanted()) continue;
      Target& to = target[j];
      to.at = in_place(c.dx[in.arg], t, w.size, in.at);
      to.acc = c.acc[in.arg];
      if (to.at) continue;
      if (!target_buffer[j]) target_buffer[j] = w.buffer();
      to = {target_buffer[j], false, true};
    }
    for (u32 k = p.n; k-- > 0;) {
      if (!needs.wanted[k]) continue;
      const Step& s = p.step[k];
      const float* a = w.constants_of(k);
      // A result is read once, an input perhaps often.
      auto open = [&](u32 operand) { return is_step(operand) ? gradient[operand - kMaxInputs] : target[operand].at; };
      auto acc = [&](u32 operand) {
        if (is_step(operand)) return false;
        const bool before = target[operand].acc;
        target[operand].acc = true;
        return before;
      };
      if (s.binary) {
        float *du = open(s.a), *dv = open(s.b);
        const bool acc_u = du && acc(s.a), acc_v = dv && acc(s.b);
        kernels().binary[s.formula].bwd(t.n, w.value(s.a), 1, w.value(s.b), 1, w.result[k], gradient[k], du, acc_u, dv,
                                        acc_v, a);
      } else {
        const bool acc_x = acc(s.a);
        kernels().unary[s.formula].bwd(t.n, w.value(s.a), w.result[k], gradient[k], open(s.a), a, acc_x);
      }
    }
    for (u32 j = 0; j < p.inputs; ++j) {
      const Program::Input& in = p.input[j];
      if (target[j].apart) to_rows(target[j].at, t, w.size, in.at, c.acc[in.arg], c.dx[in.arg]);
    }
  });
}

// ---- the entries --------------------------------------------------------------------------------

const OpId fused_id = register_op([](OpDef& op) {
  op.signature = "_fused(es: exprs, program: ints, parts: ints)";
  op.doc =
      "Several elementwise formulas in one pass: {..} X b each -> {..} X b. The program is told in cext/op/fused.h.";
  op.args = {each("es", Batch::Stack, Access::AlwaysNear)};
  op.shape = fused_shape;
  op.forward = fused_forward;
  op.backward = fused_backward;
  op.text = fused_text;
  op.composed = true;
  op.family = "(formulas)";
  op.in_kernels = true;
});

const OpId fused_with_constants_id = register_op([](OpDef& op) {
  op.signature = "_fused_with_constants(es: exprs, program: ints, parts: ints, constants: floats*)";
  op.doc = "Several elementwise formulas in one pass, with the constants of all of them: {..} X b each -> {..} X b.";
  op.args = {each("es", Batch::Stack, Access::AlwaysNear)};
  op.shape = fused_shape;
  op.forward = fused_forward;
  op.backward = fused_backward;
  op.text = fused_text;
  op.composed = true;
  op.family = "(formulas)";
  op.check = check_constants;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
