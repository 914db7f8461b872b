// Fused nodes (ops/fused.cc): the program of a call is one record, and so are its gradients.
#include "backends/cuda/ops.h"
#include "op/fused.h"

namespace dnl::cuda {
namespace {

using fused::is_step;
using fused::kMaxInputs;
using fused::Needs;
using fused::Program;
using fused::Step;
static_assert(kMaxInputs == device::kMostFusedInputs && fused::kMaxSteps == device::kMostFusedSteps);

// The call with inputs as its arguments: parts of arguments are rows of their own.
struct OfInputs {
  Call call;
  Vec<Rows> x, dx;
  Vec<bool> acc, shared;
  Vec<const Dim*> dims;

  OfInputs(const Call& c, const Program& p) : call(c) {
    for (u32 k = 0; k < p.inputs; ++k) {
      const Program::Input& in = p.input[k];
      x.push_back(part(c, c.x[in.arg], in.at));
      dx.push_back(c.dx ? part(c, c.dx[in.arg], in.at) : Rows{});
      acc.push_back(c.acc && c.acc[in.arg]);
      shared.push_back(false);
      dims.push_back(c.out_dim);
    }
    call.nargs = static_cast<int>(p.inputs);
    call.x = x.data();
    call.dx = dx.data();
    call.acc = acc.data();
    call.shared = shared.data();
    call.arg_dim = dims.data();
  }
  OfInputs(const OfInputs&) = delete;

 private:
  static Rows part(const Call& c, const Rows& rows, idx at) {
    if (!rows.wanted() || at == 0) return rows;
    if (rows.regular()) return Rows{rows.base + at, rows.stride, nullptr};
    float** list = c.scratch->array<float*>(static_cast<std::size_t>(c.members));
    for (idx m = 0; m < c.members; ++m) list[m] = rows[m] + at;
    return Rows{nullptr, 0, list};
  }
};

// Of all members, or once where they are equal; defaults of the formulas if the call has none.
Vec<float> constants_of(const Call& c, const Program& p) {
  Vec<float> all;
  for (u32 k = 0; k < p.n && !c.member; ++k)
    for (int i = 0; i < fused::count_constants(p.step[k], table()); ++i)
      all.push_back(formula_info(p.step[k].binary, p.step[k].formula).attr[i].value);
  if (!c.member) return all;
  const std::size_t bytes = p.constants * sizeof(float);
  int apart = 0;
  while (apart < c.members && !std::memcmp(c.member[apart] + 1, c.member[0] + 1, bytes)) ++apart;
  for (int m = 0; m < (apart == c.members ? 1 : c.members); ++m)
    for (u32 i = 0; i < p.constants; ++i) all.push_back(c.member[m][1 + i].f);
  return all;
}

// What forward and backward have in common. `of`: the call of the inputs.
device::Fused record_of(const Call& of, const Program& p) {
  const Vec<float> constants = constants_of(of, p);
  std::size_t lists = 2;  // of the value and its gradient, of inputs and theirs: what is staged lies together
  for (int j = 0; j < of.nargs; ++j) lists += (of.x[j].ptr ? 1u : 0u) + (of.dx && of.dx[j].ptr ? 1u : 0u);
  recorder().make_room(lists * static_cast<std::size_t>(of.members + 2) * sizeof(u64) +
                       constants.size() * sizeof(float) + fused::kMaxSteps * sizeof(device::FusedStep) +
                       kMaxInputs * sizeof(device::FusedInput) + 64);
  device::Fused r{};
  r.constants = stage(constants);
  r.constants_step = constants.size() > p.constants ? p.constants : 0;
  r.members = of.members;
  r.n = static_cast<idx>(of.out_size());
  r.count = static_cast<std::int32_t>(p.n);
  r.ninputs = static_cast<std::int32_t>(p.inputs);
  return r;
}
device::FusedStep step_of(const Program& p, u32 k) {
  const Step& s = p.step[k];
  return {(s.binary ? device::kBinary : 0u) | (s.over ? device::kOver : 0u), p.constant[k], s.formula, s.a, s.b, 0};
}
void add(Kernel kernel, const Vec<device::FusedStep>& steps, const Vec<device::FusedInput>& inputs, device::Fused* r) {
  r->steps = stage(steps);
  r->inputs = stage(inputs);
  recorder().add(kernel, *r, r->members * r->n);
}

void forward(const Call& c) {
  const Program p(c, table());
  const OfInputs of(c, p);
  device::Fused r = record_of(of.call, p);
  Vec<device::FusedStep> steps;
  for (u32 k = 0; k < p.n; ++k) steps.push_back(step_of(p, k));
  Vec<device::FusedInput> inputs;
  for (int j = 0; j < of.call.nargs; ++j) inputs.push_back({read_argument(of.call, j), {}});
  for (const Step& s : p.step)
    if (&s < p.step + p.n && s.over) write(of.call.x[s.a], c.members, c.out_size());
  if (!c.restore) r.y = write_output(c, 0);
  r.restore = c.restore;
  add(Kernel::fused, steps, inputs, &r);
}

// ---- backward ------------------------------------------------------------------------------------------------------

// What a step reads, and whom it gives to. added[j]: there is something in the gradient of input j.
unsigned backward_flags(const Call& c, const Program& p, const Needs& needs, u32 k, bool* added) {
  const Step& s = p.step[k];
  unsigned flags = needs.value[k] ? device::kMade : 0u;
  if (!needs.wanted[k]) return flags;
  if (p.reads[k] & fused::kReadsFirst) flags |= device::kReadA;
  if (p.reads[k] & fused::kReadsSecond) flags |= device::kReadB;
  if (p.reads[k] & fused::kReadsResult) flags |= device::kReadResult;
  auto give = [&](u32 operand, unsigned gives, unsigned adds) {
    if (!needs.of(c, p, operand)) return;
    flags |= gives;
    if (is_step(operand)) return;
    if (added[operand]) flags |= adds;
    added[operand] = true;
  };
  give(s.a, device::kGiveA, device::kAddA);
  if (s.binary) give(s.b, device::kGiveB, device::kAddB);
  return flags;
}

void backward(const Call& c) {
  const Program p(c, table());
  const Needs needs(c, p);
  const u32 last = p.n - 1;
  if (!needs.wanted[last]) return;
  const OfInputs of(c, p);
  const Gradients to(of.call);  // first: it may record something
  device::Fused r = record_of(of.call, p);
  bool added[kMaxInputs];
  Vec<device::FusedInput> inputs;
  for (int j = 0; j < of.call.nargs; ++j) {
    added[j] = to.acc(j);
    inputs.push_back(
        {needs.input[j] ? read_argument(of.call, j) : device::Rows{}, to.wanted(j) ? to.write(j) : device::Rows{}});
  }
  Vec<device::FusedStep> steps;
  for (u32 k = 0; k < p.n; ++k) steps.push_back(step_of(p, k));
  for (u32 k = p.n; k-- > 0;) steps[k].flags |= backward_flags(c, p, needs, k, added);
  if (p.reads[last] & fused::kReadsResult) r.y = read_output(c, 0);
  r.dy = read_gradient(c, 0);
  add(Kernel::fused_back, steps, inputs, &r);
  to.done();
}

const DeviceOpEntry plain("_fused", {forward, backward});
const DeviceOpEntry with_constants("_fused_with_constants", {forward, backward});

}  // namespace
}  // namespace dnl::cuda
