// A call whose members differ in lengths (OpDef::ragged) as calls of members that are alike, for whoever takes no
// others. Who may include: backends/. Includes: op/op.h.
#pragma once
#include <cstring>
#include <vector>

#include "op/op.h"

namespace dnl {

// f(call) for the members of each sort, in the order in which sorts first occur.
template <class F>
void each_alike(const Call& c, F f) {
  if (!c.dims) return f(c);
  const std::size_t nargs = static_cast<std::size_t>(c.nargs), outputs = static_cast<std::size_t>(c.n_outputs);
  auto dims_of = [&](int m) { return c.dims + m * (c.nargs + 1); };
  // Dims are one where they are equal (Graph::dim_by_id).
  auto alike = [&](int a, int b) { return !std::memcmp(dims_of(a), dims_of(b), (nargs + 1) * sizeof(const Dim*)); };
  std::vector<bool> done(static_cast<std::size_t>(c.members), false);
  std::vector<int> members;
  std::vector<std::vector<float*>> lists;
  lists.reserve(2 * (nargs + outputs));
  auto some = [&](const Rows& r, bool shared) {
    if (shared || !r.wanted()) return r;
    lists.emplace_back();
    for (const int m : members) lists.back().push_back(r[m]);
    return Rows{nullptr, 0, lists.back().data()};
  };
  auto all = [&](const Rows* rows, std::size_t n, const bool* shared) {
    std::vector<Rows> to;
    for (std::size_t i = 0; rows && i < n; ++i) to.push_back(some(rows[i], shared && shared[i]));
    return to;
  };
  for (int first = 0; first < c.members; ++first) {
    if (done[static_cast<std::size_t>(first)]) continue;
    members.clear();
    lists.clear();
    for (int m = first; m < c.members; ++m)
      if (!done[static_cast<std::size_t>(m)] && alike(first, m)) {
        members.push_back(m);
        done[static_cast<std::size_t>(m)] = true;
      }
    const std::vector<Rows> x = all(c.x, nargs, c.shared), y = all(c.y, outputs, nullptr),
                            dy = all(c.dy, outputs, nullptr), dx = all(c.dx, nargs, c.shared);
    std::vector<Dim> out(c.out_dim, c.out_dim + outputs);
    out[0] = *dims_of(first)[nargs];
    std::vector<const Word*> words;
    for (const int m : members)
      if (c.member) words.push_back(c.member[m]);
    Call part = c;
    part.members = static_cast<int>(members.size());
    part.dims = nullptr;
    part.arg_dim = dims_of(first);
    part.out_dim = out.data();
    part.x = x.data();
    part.y = y.data();
    if (c.dy) part.dy = dy.data();
    if (c.dx) part.dx = dx.data();
    if (c.member) part.member = words.data();
    f(part);
  }
}

}  // namespace dnl
