// Times kernels and matrix products by shape: the figures behind the limits in cext/kernels/gemm.cc.
//
// Build and run by hand, after `python setup.py build_ext --inplace` (objects are taken from the build folder):
//   B=$(ls -d build/temp.*/release) ; L=dynet_lite/.libs
//   g++ -O2 -std=c++17 -Icext tests/kernels/bench/kernel_speed.cc $B/cext/kernels/*.o -o /tmp/kernel_speed
//       -L$L -lscipy_openblas -Wl,-rpath,$PWD/$L -ldl && /tmp/kernel_speed [elementwise|gemm|big]
// Rounds of all contestants alternate and the fastest of each counts, so that other work on the machine matters little.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/kernels.h"

extern "C" {
void scipy_cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void scipy_openblas_set_num_threads(int);
}

namespace {
using dnl::idx;
using dnl::Kernels;
using dnl::NextOuter;
using dnl::Rows;
using Job = std::function<void()>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Microseconds of each job, the fastest of some rounds.
std::vector<double> race(const std::vector<Job>& jobs, int reps, int rounds = 25) {
  std::vector<double> best(jobs.size(), 1e9);
  for (int r = 0; r < rounds; ++r)
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const double t = now();
      for (int i = 0; i < reps; ++i) jobs[j]();
      best[j] = std::min(best[j], (now() - t) / reps * 1e6);
    }
  return best;
}

Rows rows(std::vector<float>& v, idx stride) {
  Rows r;
  r.base = v.data();
  r.stride = stride;
  return r;
}

void elementwise() {
  const idx n = 3200;
  std::vector<float> x(n), y(n), z(n);
  for (idx i = 0; i < n; ++i) x[i] = -4.0f + 8.0f * i / n, y[i] = 0.5f, z[i] = 0.1f;
  std::printf("ns per element, n = %ld (fwd, bwd)\n%-22s", long(n), "");
  std::vector<const Kernels*> tables;
  for (const char* isa : {"baseline", "avx2", "avx512"})
    if (const Kernels* k = dnl::kernels_for(isa)) tables.push_back(k), std::printf("%18s", isa);
  std::printf("\n");
  for (int u = 0; u < tables[0]->n_unary; ++u) {
    std::printf("%-22s", tables[0]->unary[u].name);
    for (const Kernels* k : tables) {
      const auto t = race({[&] { k->unary[u].fwd(n, x.data(), y.data(), nullptr); },
                           [&] { k->unary[u].bwd(n, x.data(), y.data(), x.data(), z.data(), nullptr, false); }},
                          10, 7);
      std::printf("%9.3f%9.3f", t[0] / n * 1e3, t[1] / n * 1e3);
    }
    std::printf("\n");
  }
  for (idx h : {48, 50, 64, 128, 200}) {
    const idx k = 64;
    std::vector<float> a(k * 4 * h, 0.3f), c(k * h, 0.2f), p(k * h, 0.1f), out(k * h), da(k * 4 * h), dp(k * h);
    std::printf("lstm h=%-15ld", long(h));
    for (const Kernels* t : tables) {
      const auto us = race({[&] { t->lstm_fwd(k, h, 1.0f, rows(a, 4 * h), rows(p, h), rows(c, h), rows(out, h)); },
                            [&] {
                              t->lstm_bwd(k, h, rows(a, 4 * h), rows(p, h), rows(c, h), rows(p, h), rows(p, h),
                                          rows(da, 4 * h), false, rows(dp, h), false);
                            }},
                           20, 15);
      std::printf("%9.3f%9.3f", us[0] / (k * h) * 1e3, us[1] / (k * h) * 1e3);
    }
    std::printf("  (ns per hidden unit, 64 rows)\n");
  }
  for (idx n2 : {5, 50, 1000, 20000}) {
    std::vector<float> v(n2, 0.1f), w(n2), g(n2);
    std::printf("n=%-6ld softmax, lse   ", long(n2));
    for (const Kernels* t : tables) {
      const auto us =
          race({[&] { t->softmax(n2, v.data(), w.data()); }, [&] { v[0] += t->logsumexp(n2, v.data()) * 0; }},
               static_cast<int>(100000 / n2 + 1), 15);
      std::printf("%9.3f%9.3f", us[0] / n2 * 1e3, us[1] / n2 * 1e3);
    }
    std::printf("  (ns per element)\n");
  }
  const idx m = 100000;
  std::vector<float> w(m, 1.0f), g(m, 0.1f), s0(m, 0.1f), s1(m, 0.1f);
  std::printf("%-22s", "adam, random_normal");
  for (const Kernels* t : tables) {
    const dnl::UpdateArgs u = {
        m,       w.data(), g.data(), s0.data(), s1.data(), nullptr, 1, 0, {1e-3f, .9f, .999f, 1e-8f, .1f, .001f},
        nullptr, nullptr,  0};
    const auto us = race({[&] { t->adam(u); }, [&] { t->random_normal(m, 5, 0, 1, w.data()); }}, 5, 9);
    std::printf("%9.3f%9.3f", us[0] / m * 1e3, us[1] / m * 1e3);
  }
  std::printf("  (ns per element, 100000)\n");
}

struct Shape {
  bool ta, tb;
  idx m, n, k;
};
void product(const Shape& s, int rounds) {
  const auto [ta, tb, m, n, k] = s;
  const idx lda = ta ? k : m, ldb = tb ? n : k;
  std::vector<float> a(m * k, 1.0f), b(k * n, 0.5f), c(m * n);
  const float beta = tb ? 1.0f : 0.0f;
  const auto own = [&, ta = ta, tb = tb, m = m, n = n, k = k](const char* isa) -> Job {
    const Kernels* t = dnl::kernels_for(isa);
    if (!t) return [] {};
    return [&, t, ta, tb, m, n, k, lda, ldb] {
      if (ta)
        t->gemm_dots(m, n, k, 1, a.data(), lda, rows(b, ldb), Rows{}, beta, rows(c, m));
      else if (tb)
        t->gemm_outer(m, n, k, 1, rows(a, lda), rows(b, ldb), beta, c.data(), m, NextOuter{});
      else
        t->gemm_cols(m, n, k, 1, a.data(), lda, rows(b, ldb), Rows{}, beta, rows(c, m));
    };
  };
  const double flops = 2.0 * m * n * k;
  const int reps = static_cast<int>(std::max(1.0, 2e5 / std::max(flops / 20.0, 200.0)));
  const auto us = race({[&, ta = ta, tb = tb, m = m, n = n, k = k] {
                          scipy_cblas_sgemm(102, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a.data(), lda, b.data(),
                                            ldb, beta, c.data(), m);
                        },
                        own("avx2"), own("avx512"),
                        [&, ta = ta, tb = tb, m = m, n = n, k = k] {
                          dnl::gemm(ta, tb, m, n, k, 1, a.data(), lda, b.data(), ldb, beta, c.data(), m);
                        }},
                       reps, rounds);
  std::printf("%c%c %6ld %5ld %6ld | %9.2f %9.2f %9.2f %9.2f | %5.0f GF/s\n", ta ? 'T' : 'N', tb ? 'T' : 'N', long(m),
              long(n), long(k), us[0], us[1], us[2], us[3], flops / us[3] / 1e3);
}
void products(bool big) {
  scipy_openblas_set_num_threads(1);
  std::printf(
      "microseconds; gemm() runs on %s, %s\nform    m     n      k |  openblas  own avx2 own avx512    gemm()\n",
      dnl::kernels().isa, dnl::blas_description());
  std::vector<Shape> shapes;
  if (big) {
    for (idx n : {16, 64, 256, 1000})
      for (idx d : {50, 100, 256}) {
        shapes.push_back({false, false, 10000, n, d});
        shapes.push_back({true, false, d, n, 10000});
        shapes.push_back({false, true, 10000, d, n});
      }
    for (idx d : {512, 1024, 2048})
      for (idx n : {1, 4, 16, 64, 256}) {
        shapes.push_back({false, false, d, n, d});
        shapes.push_back({true, false, d, n, d});
        shapes.push_back({false, true, d, d, n});
      }
  } else {
    for (idx d : {20, 50, 100, 200})
      for (idx in : {50, 100, 200})
        for (idx n : {1, 2, 4, 8, 16, 32, 64, 256}) {
          shapes.push_back({false, false, 4 * d, n, in});
          shapes.push_back({true, false, in, n, 4 * d});
        }
    for (idx m : {50, 200, 400})
      for (idx in : {50, 100})
        for (idx k : {1, 2, 4, 8, 16, 64, 256, 1024, 4096}) shapes.push_back({false, true, m, in, k});
  }
  for (const Shape& s : shapes) product(s, big ? 7 : 25);
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "all";
  if (what == "elementwise" || what == "all") elementwise();
  if (what == "gemm" || what == "all") products(false);
  if (what == "big" || what == "all") products(true);
}
