// Moving, adding, reductions, softmax family, layer norm: sizes 0..70, every layout, special values, guards.
#include <algorithm>

#include "check.h"

namespace check {
namespace {

std::string at(const Kernels& k, const char* what, idx n) {
  return std::string(k.isa) + " " + what + " n=" + std::to_string(n);
}
std::vector<double> plain(const Buffer& b) { return std::vector<double>(b.p(), b.p() + b.n); }

void moving(const Kernels& k, idx n) {
  Numbers numbers;
  Buffer x(n), y(n);
  numbers.fill(x);
  numbers.fill(y);
  std::vector<double> want(n);
  const std::vector<double> y0 = plain(y);
  k.add(n, x.p(), y.p());
  for (idx i = 0; i < n; ++i) want[i] = y0[i] + x[i];
  expect_all(y.p(), want, 1e-6, 1e-7, at(k, "add", n));
  k.axpy(n, -1.5f, x.p(), y.p());
  for (idx i = 0; i < n; ++i) want[i] += -1.5 * x[i];
  expect_all(y.p(), want, 1e-6, 1e-6, at(k, "axpy", n));
  k.scale(n, 0.3f, y.p());
  for (idx i = 0; i < n; ++i) want[i] *= double(0.3f);
  expect_all(y.p(), want, 1e-6, 1e-6, at(k, "scale", n));
  k.scale_to(n, 2.0f, x.p(), y.p(), true);
  for (idx i = 0; i < n; ++i) want[i] += 2.0 * x[i];
  expect_all(y.p(), want, 1e-6, 1e-6, at(k, "scale_to adding", n));
  y.set(kNan);
  k.scale_to(n, 2.0f, x.p(), y.p(), false);
  for (idx i = 0; i < n; ++i) want[i] = 2.0 * x[i];
  expect_all(y.p(), want, 0, 0, at(k, "scale_to", n));
  k.fill(n, 3.0f, y.p());
  expect_all(y.p(), std::vector<double>(n, 3.0), 0, 0, at(k, "fill", n));
  y.guarded(at(k, "moving", n));
}

void rows(const Kernels& k, idx n) {
  Numbers numbers;
  for (idx members : {0, 1, 2, 5, 9})
    for (int from_layout = 0; from_layout < 3; ++from_layout)
      for (int to_layout = 0; to_layout < 3; ++to_layout) {
        Block x(members, n, Block::Layout(from_layout)), y(members, n, Block::Layout(to_layout));
        for (idx m = 0; m < members; ++m)
          for (idx i = 0; i < n; ++i) x.at(m, i) = numbers.uniform(-2, 2), y.at(m, i) = 0.5f;
        k.add_rows(members, n, x.rows, y.rows);
        for (idx m = 0; m < members; ++m)
          for (idx i = 0; i < n; ++i) expect_near(y.at(m, i), x.at(m, i) + 0.5, 1e-6, 1e-7, at(k, "add_rows", n));
        k.copy_rows(members, n, x.rows, y.rows);
        for (idx m = 0; m < members; ++m)
          for (idx i = 0; i < n; ++i) expect(y.at(m, i) == x.at(m, i), at(k, "copy_rows", n));
        for (int acc = 0; acc < 2; ++acc) {
          Buffer sum(n, acc ? 1.0f : kNan);
          k.sum_rows(members, n, x.rows, sum.p(), acc);
          std::vector<double> want(n, acc ? 1.0 : 0.0);
          for (idx m = 0; m < members; ++m)
            for (idx i = 0; i < n; ++i) want[i] += x.at(m, i);
          expect_all(sum.p(), want, 1e-6, 1e-6, at(k, "sum_rows", n));
          sum.guarded(at(k, "sum_rows", n));
        }
        for (int summed = 0; summed < 2; ++summed) {
          constexpr idx kGap = 3;
          Buffer a(members), scaled(members * (n + kGap), 7.0f), sums(n, 0.5f);
          numbers.fill(a);
          k.scale_rows(members, n, x.rows, a.p(), scaled.p(), n + kGap, summed ? sums.p() : nullptr);
          for (idx i = 0; i < n; ++i) {
            double want = 0.5;
            for (idx m = 0; m < members; ++m) {
              expect(scaled[m * (n + kGap) + i] == a[m] * x.at(m, i), at(k, "scale_rows", n));
              want += summed * double(a[m]) * x.at(m, i);
            }
            expect_near(sums[i], want, 1e-6, 1e-6, at(k, "sums of scale_rows", n));
          }
          for (idx m = 0; m < members; ++m)
            for (idx i = n; i < n + kGap; ++i)
              expect(scaled[m * (n + kGap) + i] == 7.0f, at(k, "scale_rows between rows", n));
          scaled.guarded(at(k, "scale_rows", n));
          sums.guarded(at(k, "scale_rows", n));
        }
        x.buffer.guarded(at(k, "rows", n));
        y.buffer.guarded(at(k, "rows", n));
      }
  // One row for all (stride 0), and rows of the target that repeat.
  Buffer x(n), y(2 * n, 0.0f);
  numbers.fill(x);
  Rows one;
  one.base = x.p();
  float* repeat[3] = {y.p(), y.p() + n, y.p()};
  Rows to;
  to.ptr = repeat;
  k.add_rows(3, n, one, to);
  for (idx i = 0; i < n; ++i) {
    expect(y[i] == 2 * x[i], at(k, "add_rows to a repeated row", n));
    expect(y[n + i] == x[i], at(k, "add_rows from a shared row", n));
  }
}

void transposes_strided(const Kernels& k) {
  Numbers numbers;
  for (idx m : {1, 8, 13, 40})
    for (idx n : {1, 8, 9, 33})
      for (idx gap : {0, 3}) {
        Buffer x(m * (n + gap)), y(n * (m + gap), 0.5f);
        numbers.fill(x);
        k.transpose_strided(m, n, x.p(), n + gap, y.p(), m + gap, false);
        for (idx j = 0; j < n; ++j)
          for (idx i = 0; i < m + gap; ++i)
            expect(y[j * (m + gap) + i] == (i < m ? x[i * (n + gap) + j] : 0.5f), at(k, "transpose_strided", n));
        y.guarded("transpose_strided");
      }
}

void transposes(const Kernels& k) {
  Numbers numbers;
  for (idx m : {0, 1, 2, 7, 8, 9, 17, 33})
    for (idx n : {0, 1, 3, 8, 15, 16, 40})
      for (int acc = 0; acc < 2; ++acc) {
        Buffer x(m * n), y(m * n, 0.5f);
        numbers.fill(x);
        k.transpose(m, n, x.p(), y.p(), acc);
        for (idx j = 0; j < n; ++j)
          for (idx i = 0; i < m; ++i)
            expect_near(y[i * n + j], x[j * m + i] + (acc ? 0.5 : 0), 1e-6, 1e-7, at(k, "transpose", n));
        y.guarded("transpose");
      }
}

void reductions(const Kernels& k, idx n) {
  Numbers numbers;
  Buffer x(n), y(n);
  numbers.fill(x);
  numbers.fill(y);
  double sum = 0, squares = 0, dot = 0;
  for (idx i = 0; i < n; ++i) sum += x[i], squares += double(x[i]) * x[i], dot += double(x[i]) * y[i];
  const double room = 1e-6 + n * 1e-8;
  expect_near(k.sum(n, x.p()), sum, 1e-6, room, at(k, "sum", n));
  expect_near(k.sum_squares(n, x.p()), squares, 1e-6, 0, at(k, "sum_squares", n));
  expect_near(k.dot(n, x.p(), y.p()), dot, 1e-6, room, at(k, "dot", n));
  expect(k.all_finite(n, x.p()), at(k, "all_finite", n));
  const float* most = std::max_element(x.p(), x.p() + n);
  expect(k.max(n, x.p()) == (n ? *most : -kInf), at(k, "max", n));
  if (n == 0) return;
  expect(k.argmax(n, x.p()) == most - x.p(), at(k, "argmax", n));
  for (idx i = 0; i < n; i += n > 100 ? 97 : 1) {
    const float keep = x[i];
    x[i] = 50;
    expect(k.max(n, x.p()) == 50 && k.argmax(n, x.p()) == i, at(k, "max moved", n));
    for (float bad : {kNan, kInf, -kInf}) {
      x[i] = bad;
      expect(!k.all_finite(n, x.p()), at(k, "all_finite with one that is not", n));
    }
    x[i] = kNan;
    expect(std::isnan(k.max(n, x.p())), at(k, "max with NaN", n));
    x[i] = keep;
  }
  for (idx i = 0; i < n; ++i) x[i] = 3;
  expect(k.argmax(n, x.p()) == 0, at(k, "argmax of equal numbers is the first", n));
  for (idx i = 0; i < n; ++i) x[i] = -kInf;
  expect(k.max(n, x.p()) == -kInf && k.argmax(n, x.p()) == 0, at(k, "max of -inf", n));
  for (idx i = 0; i < n; ++i) x[i] = 1e25f;
  expect_near(k.sum_squares(n, x.p()), n * double(1e25f) * double(1e25f), 1e-6, 0,
              at(k, "sum_squares of huge numbers", n));
  for (idx i = 0; i < n; ++i) x[i] = 1e-25f;
  expect_near(k.sum_squares(n, x.p()), n * double(1e-25f) * double(1e-25f), 1e-6, 0,
              at(k, "sum_squares of tiny ones", n));
}

}  // namespace

void vectors(const Kernels& k) {
  for (idx n = 0; n <= 70; ++n) {
    moving(k, n);
    reductions(k, n);
    if (n < 40 || n > 60) rows(k, n);
  }
  for (idx n : {128, 150}) rows(k, n);
  for (idx n : {4095, 4096, 4097, 100003}) reductions(k, n);
  transposes(k);
  transposes_strided(k);
  // The error of a long sum does not grow: 10 million times 0.1.
  std::vector<float> x(10000000, 0.1f);
  expect_near(k.sum(x.size(), x.data()), x.size() * double(0.1f), 1e-6, 0, std::string(k.isa) + " long sum");
}

// ---- softmax family ------------------------------------------------------------------------------------------------

namespace {

double exact_lse(const Buffer& x) {
  double m = -kInf, s = 0;
  for (idx i = 0; i < x.n; ++i) m = std::fmax(m, x.p()[i]);
  if (std::isinf(m)) return m;
  for (idx i = 0; i < x.n; ++i) s += std::exp(x.p()[i] - m);
  return m + std::log(s);
}

void softmax_sizes(const Kernels& k, idx n, float lo, float hi) {
  Numbers numbers;
  Buffer x(n), y(n), ly(n), dy(n), dx(n);
  numbers.fill(x, lo, hi);
  numbers.fill(dy);
  const double lse = exact_lse(x);
  const double room = 1e-6 * std::fmax(1, std::fmax(std::fabs(lo), std::fabs(hi)));
  expect_near(k.logsumexp(n, x.p()), lse, 1e-6, room * 0.2, at(k, "logsumexp", n));
  k.softmax(n, x.p(), y.p());
  k.log_softmax(n, x.p(), ly.p());
  double inner = 0, total = 0;
  for (idx i = 0; i < n; ++i) {
    const double p = std::exp(x[i] - lse);
    expect_near(y[i], p, 3e-6 + 6e-8 * std::fabs(x[i] - lse), 1e-37, at(k, "softmax", n));
    expect_near(ly[i], x[i] - lse, 1e-6, room, at(k, "log_softmax", n));
    inner += p * dy[i];
    total += dy[i];
  }
  for (int acc = 0; acc < 2; ++acc) {
    const double was = acc ? 0.5 : 0;
    dx.set(0.5f);
    k.softmax_bwd(n, y.p(), dy.p(), dx.p(), acc);
    for (idx i = 0; i < n; ++i)
      expect_near(dx[i], was + std::exp(x[i] - lse) * (dy[i] - inner), 1e-5, 2e-6, at(k, "softmax_bwd", n));
    dx.set(0.5f);
    k.log_softmax_bwd(n, ly.p(), dy.p(), dx.p(), acc);
    for (idx i = 0; i < n; ++i)
      expect_near(dx[i], was + dy[i] - std::exp(x[i] - lse) * total, 1e-5, 1e-5, at(k, "log_softmax_bwd", n));
    dx.set(0.5f);
    k.exp_shifted(n, x.p(), static_cast<float>(lse), -1.5f, dx.p(), acc);
    for (idx i = 0; i < n; ++i)
      expect_near(dx[i], was - 1.5 * std::exp(x[i] - double(static_cast<float>(lse))), 1e-5, 1e-6,
                  at(k, "exp_shifted", n));
    dx.guarded(at(k, "softmax family", n));
  }
  y.guarded(at(k, "softmax", n));
  ly.guarded(at(k, "log_softmax", n));
}

// Exponentials of numbers in pieces of `step`, each higher than the one before by `rise`, and what must come together
// to the softmax and the logsumexp.
void exp_pieces(const Kernels& k, idx n, idx step, float lo, float hi, float rise = 0) {
  Numbers numbers;
  Buffer x(n), y(n);
  numbers.fill(x, lo, hi);
  for (idx i = 0; i < n; ++i) x[i] += static_cast<float>(i / step) * rise;
  const double lse = exact_lse(x);
  float largest = -kInf;
  double sum = 0;
  std::vector<double> so_far;
  for (idx i = 0; i < n; i += step) {
    k.exp_below(n - i < step ? n - i : step, x.p() + i, y.p() + i, &largest, &sum);
    so_far.push_back(largest);
  }
  expect_near(largest + std::log(sum), lse, 1e-6, 1e-6 * std::fmax(1, std::fabs(hi)), at(k, "exp_below, sum", n));
  for (idx i = 0; i < n; ++i) {
    const double rounded = 6e-8 * std::fabs(x[i] - lse);  // large differences of floats are floats
    expect_near(y[i] * std::exp(so_far[i / step] - largest) / sum, std::exp(x[i] - lse), 3e-6 + rounded, 1e-37,
                at(k, "exp_below", n));
  }
  y.guarded(at(k, "exp_below", n));
  Buffer there(n);  // where they lie: all pieces, and then each as the first one
  std::copy(x.p(), x.p() + n, there.p());
  largest = -kInf;
  sum = 0;
  for (idx i = 0; i < n; i += step)
    k.exp_below(n - i < step ? n - i : step, there.p() + i, there.p() + i, &largest, &sum);
  for (idx i = 0; i < n; ++i) expect(there[i] == y[i], at(k, "exp_below in place", n));
  for (idx i = 0; i < n && rise == 0; i += step) {
    largest = -kInf;
    sum = 0;
    k.exp_below(n - i < step ? n - i : step, x.p() + i, x.p() + i, &largest, &sum);
    for (idx j = i; j < n && j < i + step; ++j)
      expect_near(x[j] * std::exp(largest - so_far[i / step]), y[j], 3e-6 + 1.2e-7 * std::fabs(std::log(y[j] + 1e-37)),
                  1e-37, at(k, "exp_below in place", n));
  }
}

void exp_pieces_special(const Kernels& k) {
  for (idx n : {1, 3, 16, 17, 50}) {
    const auto pieces = [&](std::vector<float> fills, Buffer* y, float* largest, double* sum) {
      *largest = -kInf;
      *sum = 0;
      for (float fill : fills) {
        Buffer x(n, fill);
        k.exp_below(n, x.p(), y->p(), largest, sum);
      }
    };
    Buffer y(n);
    float largest;
    double sum;
    pieces({-kInf}, &y, &largest, &sum);
    expect(largest == -kInf && sum == 0 && y[0] == 0 && y[n - 1] == 0, at(k, "exp_below of -inf", n));
    pieces({-kInf, 2.0f, -kInf}, &y, &largest, &sum);
    expect(largest == 2 && sum == n && y[n - 1] == 0, at(k, "exp_below of -inf beside numbers", n));
    pieces({1e30f, kInf, 5.0f}, &y, &largest, &sum);
    expect(largest == kInf && sum == n && y[0] == 0, at(k, "exp_below after inf", n));
    pieces({0.0f, kInf}, &y, &largest, &sum);
    expect(largest == kInf && sum == n && y[0] == 1, at(k, "exp_below of inf", n));
    pieces({0.0f, kNan, 1.0f}, &y, &largest, &sum);
    expect(std::isnan(largest) && std::isnan(y[n - 1]), at(k, "exp_below after NaN", n));
  }
}

void softmax_special(const Kernels& k) {
  for (idx n : {1, 3, 16, 17, 50}) {
    Buffer x(n, -kInf), y(n), g(n);
    expect(k.logsumexp(n, x.p()) == -kInf, at(k, "logsumexp of -inf", n));
    k.softmax(n, x.p(), y.p());
    expect_all(y.p(), std::vector<double>(n, 0.0), 0, 0, at(k, "softmax of -inf", n));
    k.log_softmax(n, x.p(), y.p());
    expect_all(y.p(), std::vector<double>(n, -kInf), 0, 0, at(k, "log_softmax of -inf", n));
    k.exp_shifted(n, x.p(), -kInf, 1.0f, g.p(), false);
    expect_all(g.p(), std::vector<double>(n, 0.0), 0, 0, at(k, "exp_shifted of -inf", n));
    x[n - 1] = 1000.0f;
    expect(k.logsumexp(n, x.p()) == 1000.0f, at(k, "logsumexp with one that is there", n));
    k.softmax(n, x.p(), y.p());
    expect(y[n - 1] == 1 && (n == 1 || y[0] == 0), at(k, "softmax with one that is there", n));
    x.set(3e38f);
    expect_near(k.logsumexp(n, x.p()), 3e38, 1e-6, 0, at(k, "logsumexp of huge numbers", n));
    k.softmax(n, x.p(), y.p());
    expect_all(y.p(), std::vector<double>(n, 1.0 / n), 1e-6, 0, at(k, "softmax of huge numbers", n));
    x.set(-3e38f);
    k.softmax(n, x.p(), y.p());
    expect_all(y.p(), std::vector<double>(n, 1.0 / n), 1e-6, 0, at(k, "softmax of hugely negative numbers", n));
    x[0] = kInf;
    expect(k.logsumexp(n, x.p()) == kInf, at(k, "logsumexp with inf", n));
    k.softmax(n, x.p(), y.p());
    expect(y[0] == 1 && (n == 1 || y[n - 1] == 0), at(k, "softmax with inf", n));
    k.log_softmax(n, x.p(), y.p());
    expect(y[0] == 0 && (n == 1 || y[n - 1] == -kInf), at(k, "log_softmax with inf", n));
    x[0] = kNan;
    k.softmax(n, x.p(), y.p());
    expect(std::isnan(k.logsumexp(n, x.p())) && std::isnan(y[0]) && std::isnan(y[n - 1]), at(k, "softmax with NaN", n));
  }
}

// Of keys with some columns, with a gradient of the keys that is assigned, added, or not wanted, and one of the query
// or none.
void attention(const Kernels& k, idx n, idx columns) {
  Numbers numbers;
  Buffer keys(n * columns), query(n), v(n), scores(columns), dscores(columns), dkeys(n * columns), dquery(n), dv(n);
  numbers.fill(keys, -3, 3);
  for (Buffer* b : {&query, &v}) numbers.fill(*b);
  numbers.fill(dscores);
  auto t = [&](idx j, idx i) { return std::tanh(double(keys[j * n + i]) + query[i]); };
  k.attention_scores(n, columns, keys.p(), query.p(), v.p(), scores.p());
  for (idx j = 0; j < columns; ++j) {
    double sum = 0;
    for (idx i = 0; i < n; ++i) sum += v[i] * t(j, i);
    expect_near(scores[j], sum, 2e-6, 2e-7 * static_cast<double>(n), at(k, "attention_scores", n));
  }
  for (const char want : {'=', '+', '0'}) {
    dkeys.set(0.5f);
    dquery.set(0.25f);
    dv.set(0.125f);
    k.attention_scores_bwd(n, columns, keys.p(), query.p(), v.p(), dscores.p(), want == '0' ? nullptr : dkeys.p(),
                           want == '+', want == '+' ? nullptr : dquery.p(), dv.p());
    for (idx i = 0; i < n; ++i) {
      double to_query = 0.25, to_v = 0.125;
      for (idx j = 0; j < columns; ++j) {
        const double most = double(dscores[j]) * v[i], d = most * (1 - t(j, i) * t(j, i));
        to_query += d;
        to_v += dscores[j] * t(j, i);
        expect_near(dkeys[j * n + i], want == '0' ? 0.5 : (want == '+' ? 0.5 : 0) + d, 2e-7, 5e-7 * std::fabs(most),
                    at(k, "attention_scores dkeys", n));  // 1 - t^2 loses digits
      }
      expect_near(dquery[i], want == '+' ? 0.25 : to_query, 2e-6, 1e-6 * static_cast<double>(columns),
                  at(k, "attention_scores dquery", n));
      expect_near(dv[i], to_v, 2e-6, 1e-6 * static_cast<double>(columns), at(k, "attention_scores dv", n));
    }
  }
}

void layer_norms(const Kernels& k, idx n) {
  Numbers numbers;
  Buffer x(n), g(n), b(n), y(n), dy(n), dx(n), dg(n, 0.25f), db(n, 0.5f), stats(2);
  numbers.fill(x, 1, 4);
  numbers.fill(g);
  numbers.fill(b);
  numbers.fill(dy);
  double mean = 0, var = 0, m1 = 0, m2 = 0;
  for (idx i = 0; i < n; ++i) mean += double(x[i]) / n;
  for (idx i = 0; i < n; ++i) var += (x[i] - mean) * (x[i] - mean) / n;
  const double rstd = var > 0 ? 1 / std::sqrt(var) : 0;
  k.layer_norm(n, x.p(), g.p(), b.p(), y.p(), stats.p());
  expect_near(stats[0], mean, 1e-6, 0, at(k, "layer_norm mean", n));
  expect_near(stats[1], rstd, 3e-6, 0, at(k, "layer_norm std", n));
  for (idx i = 0; i < n; ++i) {
    const double z = (x[i] - mean) * rstd;
    expect_near(y[i], g[i] * z + b[i], 1e-5, 1e-5, at(k, "layer_norm", n));
    m1 += double(dy[i]) * g[i] / n;
    m2 += double(dy[i]) * g[i] * z / n;
  }
  for (int acc = 0; acc < 2; ++acc) {
    dx.set(0.5f);
    k.layer_norm_bwd(n, x.p(), g.p(), stats.p(), dy.p(), dx.p(), acc, dg.p(), db.p());
    for (idx i = 0; i < n; ++i) {
      const double z = (x[i] - mean) * rstd;
      expect_near(dx[i], (acc ? 0.5 : 0) + rstd * (double(dy[i]) * g[i] - m1 - z * m2), 1e-4, 1e-4,
                  at(k, "layer_norm dx", n));
      expect_near(dg[i], 0.25 + (acc + 1) * dy[i] * z, 1e-4, 1e-4, at(k, "layer_norm dg", n));
      expect_near(db[i], 0.5 + (acc + 1) * double(dy[i]), 1e-5, 1e-5, at(k, "layer_norm db", n));
    }
  }
  k.layer_norm_bwd(n, x.p(), g.p(), stats.p(), dy.p(), nullptr, false, nullptr, nullptr);
  // Equal numbers: exactly b, and no gradient.
  x.set(0.1f);
  k.layer_norm(n, x.p(), g.p(), b.p(), y.p(), stats.p());
  k.layer_norm_bwd(n, x.p(), g.p(), stats.p(), dy.p(), dx.p(), false, nullptr, nullptr);
  for (idx i = 0; i < n; ++i) expect(y[i] == b[i] && dx[i] == 0, at(k, "layer_norm of equal numbers", n));
  for (Buffer* out : {&y, &dx, &dg, &db, &stats}) out->guarded(at(k, "layer_norm", n));
}

}  // namespace

void softmaxes(const Kernels& k) {
  for (idx n = 1; n <= 70; ++n) {
    softmax_sizes(k, n, -2, 2);
    softmax_sizes(k, n, -80, 80);
    softmax_sizes(k, n, 9000, 9010);
    if (n > 2) layer_norms(k, n);
    for (idx columns : {1, 2, 23}) attention(k, n, columns);
  }
  softmax_sizes(k, 10007, -5, 5);
  k.softmax(0, nullptr, nullptr);
  expect(k.logsumexp(0, nullptr) == -kInf, "logsumexp of nothing");
  softmax_special(k);
  for (idx n : {1, 2, 15, 16, 33, 70, 1000})
    for (idx step : {1, 7, 16, 64, 128}) {
      exp_pieces(k, n, step, -3, 3);
      exp_pieces(k, n, step, -80, 80);
      exp_pieces(k, n, step, 9000, 9010);
      for (float rise : {1.f, 30.f, 50.f, 100.f, -30.f, -200.f}) exp_pieces(k, n, step, -3, 3, rise);
    }
  exp_pieces_special(k);
}

}  // namespace check
