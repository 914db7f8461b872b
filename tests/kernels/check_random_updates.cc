// Random numbers (their distribution, and that they depend on seed and place alone) and optimizer rules (the values
// that DyNet's trainers give).
#include <algorithm>
#include <cstring>

#include "check.h"

namespace check {

void random_numbers(const Kernels& k) {
  const std::string isa = k.isa;
  const idx n = 1000000;
  std::vector<float> u(n), z(n), mask(n), again(n);
  k.random_uniform(n, 42, -1, 3, u.data());
  k.random_normal(n, 42, 0.5f, 2, z.data());
  k.random_mask(n, 42, 0.8f, 1.25f, mask.data());
  double su = 0, su2 = 0, sz = 0, sz2 = 0, sz4 = 0, sm = 0, lag = 0;
  idx outside = 0, tail = 0;
  for (idx i = 0; i < n; ++i) {
    const double x = (u[i] - 1) / 4.0, y = (z[i] - 0.5) / 2.0;
    su += x, su2 += x * x, sz += y, sz2 += y * y, sz4 += y * y * y * y, sm += mask[i] != 0;
    if (i) lag += y * (z[i - 1] - 0.5) / 2.0;
    outside += u[i] < -1 || u[i] >= 3;
    tail += std::fabs(y) > 4;
    expect(mask[i] == 0 || mask[i] == 1.25f, isa + " random_mask value");
  }
  expect(outside == 0, isa + " random_uniform leaves its range");
  expect_near(su / n, 0, 0, 1.5e-3, isa + " random_uniform mean");
  expect_near(su2 / n, 1.0 / 12, 0, 5e-4, isa + " random_uniform variance");
  expect_near(sz / n, 0, 0, 5e-3, isa + " random_normal mean");
  expect_near(sz2 / n, 1, 0, 7e-3, isa + " random_normal variance");
  expect_near(sz4 / n, 3, 0, 0.05, isa + " random_normal kurtosis");
  expect_near(lag / n, 0, 0, 5e-3, isa + " random_normal neighbours");
  expect_near(double(tail), 63, 0, 35, isa + " random_normal tail");
  expect_near(sm / n, 0.8, 0, 2e-3, isa + " random_mask share");
  // The quantile function itself: sorted, the normals follow erf.
  std::sort(z.begin(), z.end());
  for (double q : {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999}) {
    const double x = (z[static_cast<idx>(q * n)] - 0.5) / 2.0;
    expect_near(0.5 * std::erfc(-x / std::sqrt(2.0)), q, 0, 2e-3, isa + " random_normal quantile");
  }
  // Each value depends on the seed and its place, not on how many are asked for.
  for (idx m : {1, 5, 16, 17, 63}) {
    std::vector<float> part(m), whole(64);
    k.random_normal(m, 7, 0, 1, part.data());
    k.random_normal(64, 7, 0, 1, whole.data());
    for (idx i = 0; i < m; ++i) expect(part[i] == whole[i], isa + " random numbers depend on the count");
  }
  // Near seeds give unrelated numbers; the bits are those of the baseline.
  k.random_uniform(n, 43, -1, 3, again.data());
  double cross = 0;
  for (idx i = 0; i < n; ++i) cross += (u[i] - 1) / 4.0 * (again[i] - 1) / 4.0;
  expect_near(cross / n, 0, 0, 5e-4, isa + " neighbouring seeds");
  dnl::kernels_for("baseline")->random_mask(n, 42, 0.8f, 1.25f, again.data());
  expect(again == mask, isa + " random_mask differs from baseline");
  k.random_uniform(4, 1, 2, 2, again.data());
  expect(again[0] == 2 && again[3] == 2, isa + " random_uniform of an empty range");
  Buffer b(13);
  k.random_normal(13, 1, 0, 1, b.p());
  k.random_uniform(13, 1, 0, 1, b.p());
  k.random_mask(13, 1, 0.5f, 1, b.p());
  b.guarded(isa + " random numbers");
}

// DyNet's trainers on one weight of 1.0 with gradient 2, values after three updates (measured on DyNet 2.1).
void updates(const Kernels& k) {
  struct Rule {
    const char* name;
    void (*fn)(const dnl::UpdateArgs&);
    float c[4];
    double after[3];
  };
  const Rule rules[] = {
      {"sgd", k.sgd, {0.1f}, {.8, .6, .4}},
      {"momentum", k.momentum, {0.01f, 0.9f}, {.98, .942, .8878}},
      {"adagrad", k.adagrad, {0.1f, 1e-20f}, {.9, .829289, .771554}},
      {"adadelta", k.adadelta, {1.0f, 1e-6f, 0.95f}, {.995528, .990999, .986431}},
      {"rmsprop", k.rmsprop, {0.001f, 1e-8f, 0.9f}, {.996838, .994544, .992623}},
      {"adam", k.adam, {0.001f, 0.9f, 0.999f, 1e-8f}, {.999, .998, .997}},
      {"amsgrad", k.amsgrad, {0.001f, 0.9f, 0.999f, 1e-8f}, {.999, .998, .997}},
  };
  for (const Rule& rule : rules)
    for (idx n : {0, 1, 7, 16, 33, 50}) {
      Buffer w(n, 1), g(n), s0(n, 0), s1(n, 0), s2(n, 0);
      for (int step = 0; step < 3; ++step) {
        g.set(4);
        dnl::UpdateArgs u = {n, w.p(), g.p(), s0.p(), s1.p(), s2.p(), 0.5f, 0, {}, nullptr, nullptr, 0};
        for (int i = 0; i < 4; ++i) u.c[i] = rule.c[i];
        u.c[4] = static_cast<float>(1 - std::pow(double(u.c[1]), step + 1));
        u.c[5] = static_cast<float>(1 - std::pow(double(u.c[2]), step + 1));
        rule.fn(u);
        const std::string where = std::string(k.isa) + " " + rule.name + " step " + std::to_string(step + 1);
        expect_all(w.p(), std::vector<double>(n, rule.after[step]), 2e-6, 0, where);
        expect_all(g.p(), std::vector<double>(n, 0.0), 0, 0, where + " gradient cleared");
      }
      for (Buffer* b : {&w, &g, &s0, &s1, &s2}) b->guarded(std::string(k.isa) + " " + rule.name);
      g.set(0);
      const float before = n ? w[0] : 0;
      if (std::string(rule.name) == "sgd") {
        dnl::UpdateArgs u = {n, w.p(), g.p(), nullptr, nullptr, nullptr, 1, 0.25f, {0.1f}, nullptr, nullptr, 0};
        rule.fn(u);
        if (n) expect_near(w[0], before * 0.75, 1e-6, 0, "weight decay");
      }
    }
  // A gradient that is an outer product: the same bits as when it is formed. GPUs form it.
  for (const Rule& rule : rules)
    if (std::string(k.isa) != "cuda")
      for (idx rows : {1, 7, 16, 33})
        for (idx columns : {1, 3}) {
          const idx n = rows * columns;
          Buffer y(rows), x(columns), g(n), one[4] = {Buffer(n), Buffer(n), Buffer(n), Buffer(n)},
                                            two[4] = {Buffer(n), Buffer(n), Buffer(n), Buffer(n)};
          for (idx i = 0; i < rows; ++i) y[i] = 0.3f * static_cast<float>(i) - 1.7f;
          for (idx j = 0; j < columns; ++j) x[j] = 0.9f - 0.7f * static_cast<float>(j);
          for (idx i = 0; i < n; ++i) {
            g[i] = x[i / rows] * y[i % rows];
            for (int b = 0; b < 4; ++b) one[b][i] = two[b][i] = 0.1f + 0.01f * static_cast<float>(i % 5 + b);
          }
          dnl::UpdateArgs u = {n,    one[0].p(), g.p(), one[1].p(), one[2].p(), one[3].p(),
                               0.7f, 0.01f,      {},    nullptr,    nullptr,    0};
          for (int i = 0; i < 4; ++i) u.c[i] = rule.c[i];
          u.c[4] = u.c[5] = 0.5f;
          rule.fn(u);
          dnl::UpdateArgs v = {n,    two[0].p(), nullptr, two[1].p(), two[2].p(), two[3].p(),
                               0.7f, 0.01f,      {},      y.p(),      x.p(),      rows};
          std::memcpy(v.c, u.c, sizeof u.c);
          rule.fn(v);
          const std::string where = std::string(k.isa) + " " + rule.name + " by an outer product";
          for (int b = 0; b < 4; ++b) {
            expect(std::memcmp(one[b].p(), two[b].p(), static_cast<std::size_t>(n) * sizeof(float)) == 0, where);
            two[b].guarded(where);
          }
        }
  Buffer w(3), g(3), s0(3, 0);
  w[0] = 0.2f, w[1] = 0.3f, w[2] = 0.5f;
  g[0] = 1, g[1] = 0, g[2] = -1;
  k.eg({3, w.p(), g.p(), s0.p(), nullptr, nullptr, 1, 0, {0.1f, 0.9f}, nullptr, nullptr, 0});
  const double e[3] = {0.2 * std::exp(-0.1), 0.3, 0.5 * std::exp(0.1)}, total = e[0] + e[1] + e[2];
  expect_all(w.p(), {e[0] / total, e[1] / total, e[2] / total}, 1e-6, 0, std::string(k.isa) + " eg");
}

}  // namespace check
