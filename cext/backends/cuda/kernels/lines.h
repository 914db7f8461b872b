// Kernels over lines, the numbers along one dim of a tensor: softmax and its family, losses by label, places of the
// best, running sums. A block does a line where all of it is looked at several times, else a thread does.
// Who may include: kernels/all.h. Includes: memory.h, functions.h, reductions.h.
#pragma once
#include "functions.h"
#include "memory.h"
#include "reductions.h"

namespace dnl::device {

// A line of a member: where it begins, and which one it is.
struct Line {
  i64 m, l, at;
};
inline Line line_of(const Lines& r, i64 i) {
  const i64 l = i % r.lines;
  return {i / r.lines, l, l / r.inner * r.n * r.inner + l % r.inner};
}
template <class F>
inline void each_line(const Lines& r, F f) {  // by blocks
  for (i64 i = DNL_BLOCK; i < r.members * r.lines; i += DNL_BLOCKS) f(line_of(r, i));
}
template <class F>
inline void each_line_of_thread(const Lines& r, F f) {
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.lines; i += s.step) f(line_of(r, i));
}
// Every number of every line: f(line, which).
template <class F>
inline void each_number(const Lines& r, F f) {
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.lines * r.n; i += s.step) f(line_of(r, i / r.n), i % r.n);
}
inline i32 word_of(const Lines& r, i64 i) { return reinterpret_cast<const i32*>(r.words)[i]; }

// ---- softmax: x to y; `what`: its logarithm ------------------------------------------------------------------------

DNL_KERNEL(softmax, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const i64 step = r.inner;
    const float* x = row(r.x, line.m) + line.at;
    float* y = row(r.y, line.m) + line.at;
    const float m = block_max(r.n, x, step).value;
    const bool fine = usual(m);
    const double infinite = fine ? 0 : count_inf(r.n, x, step);
    const double sum =
        fine ? block_sum(r.n, [&](i64 i) { return static_cast<double>(vexp(x[i * step] - m)); }) : infinite;
    const float scale = static_cast<float>(1.0 / sum), log_sum = static_cast<float>(log(sum));
    DNL_BARRIER();  // y may be x
    for (i64 i = DNL_THREAD; i < r.n; i += 128) {
      const float v = x[i * step];
      float& to = y[i * step];
      if (fine)
        to = r.what ? (v - m) - log_sum : vexp(v - m) * scale;
      else if (m != m)
        to = m;
      else if (r.what)
        to = v == DNL_INFINITY ? -log_sum : -DNL_INFINITY;
      else
        to = v == DNL_INFINITY ? scale : 0.0f;
    }
  });
}

DNL_KERNEL(softmax_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float *y = row(r.y, line.m) + line.at, *dy = row(r.dy, line.m) + line.at;
    float* dx = row(r.dx, line.m) + line.at;
    const float sum = static_cast<float>(block_sum(r.n, [&](i64 i) {
      const double d = dy[i * r.inner];
      return r.what ? d : d * y[i * r.inner];
    }));
    for (i64 i = DNL_THREAD * r.inner; i < r.n * r.inner; i += 128 * r.inner)
      put(dx + i, r.what ? dy[i] - vexp(y[i]) * sum : y[i] * (dy[i] - sum), r.acc);
  });
}

// Over the entries whose numbers are words[first] .. words[end - 1], where first and end are words m and m + 1.
DNL_KERNEL(restricted, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    float* y = row(r.y, line.m) + line.at;
    const i64 first = word_of(r, line.m), count = word_of(r, line.m + 1) - first;
    auto chosen = [&](i64 i) { return x[word_of(r, first + i)]; };
    double most = block_sum(1, [&](i64) { return -static_cast<double>(DNL_INFINITY); });
    for (i64 i = 0; i < count; ++i) most = chosen(i) > most || chosen(i) != chosen(i) ? chosen(i) : most;
    const float m = static_cast<float>(most);
    const bool fine = usual(m);
    const double sum = block_sum(count, [&](i64 i) {
      return fine ? static_cast<double>(vexp(chosen(i) - m)) : chosen(i) == DNL_INFINITY ? 1.0 : 0.0;
    });
    const float log_sum = static_cast<float>(log(sum));
    for (i64 i = DNL_THREAD; i < r.n; i += 128) y[i] = -DNL_INFINITY;
    DNL_BARRIER();
    for (i64 i = DNL_THREAD; i < count; i += 128) {
      const float v = chosen(i);
      y[word_of(r, first + i)] = fine ? (v - m) - log_sum : m != m ? m : v == DNL_INFINITY ? -log_sum : -DNL_INFINITY;
    }
  });
}
DNL_KERNEL(restricted_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float *y = row(r.y, line.m) + line.at, *dy = row(r.dy, line.m) + line.at;
    float* dx = row(r.dx, line.m) + line.at;
    const i64 first = word_of(r, line.m), count = word_of(r, line.m + 1) - first;
    const float sum =
        static_cast<float>(block_sum(count, [&](i64 i) { return static_cast<double>(dy[word_of(r, first + i)]); }));
    if (!r.acc)
      for (i64 i = DNL_THREAD; i < r.n; i += 128) dx[i] = 0.0f;
    DNL_BARRIER();
    for (i64 i = DNL_THREAD; i < count; i += 128) {
      const i64 at = word_of(r, first + i);
      dx[at] += dy[at] - vexp(y[at]) * sum;
    }
  });
}

// ---- logsumexp, and the loss by label ------------------------------------------------------------------------------

// To y; with labels, words by line: to z, and to y what it is above the label's number.
DNL_KERNEL(log_sum_exp, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    const float sum = block_log_sum_exp(r.n, x, r.inner);
    if (DNL_THREAD != 0) return;
    if (!r.words) {
      row(r.y, line.m)[line.l] = sum;
    } else {
      row(r.z, line.m)[line.l] = sum;
      row(r.y, line.m)[line.l] = sum - x[word_of(r, line.m * r.lines + line.l)];
    }
  });
}
// dx = dy (exp(x - z) - 1 at the label).
DNL_KERNEL(log_sum_exp_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_number(r, [&](const Line& line, i64 k) {
    const i64 at = line.at + k * r.inner;
    const float x = row(r.x, line.m)[at], z = row(r.z, line.m)[line.l], d = row(r.dy, line.m)[line.l];
    float share = x == -DNL_INFINITY ? 0.0f : x == z ? 1.0f : vexp(x - z);
    if (r.words && k == word_of(r, line.m * r.lines + line.l)) share -= 1.0f;
    put(row(r.dx, line.m) + at, d * share, r.acc);
  });
}

// ---- margin losses: labels are words by line, margins numbers by member --------------------------------------------

DNL_KERNEL(hinge, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    const i64 label = word_of(r, line.m * r.lines + line.l);
    const float base = floats(r.numbers)[line.m] - x[label * r.inner];
    const double sum = block_sum(r.n, [&](i64 j) {
      const float over = base + x[j * r.inner];
      return j != label && !(over <= 0.0f) ? static_cast<double>(over) : 0.0;
    });
    if (DNL_THREAD == 0) row(r.y, line.m)[line.l] = static_cast<float>(sum);
  });
}
DNL_KERNEL(hinge_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    const i64 label = word_of(r, line.m * r.lines + line.l);
    const float base = floats(r.numbers)[line.m] - x[label * r.inner], d = row(r.dy, line.m)[line.l];
    auto violates = [&](i64 j) { return j != label && base + x[j * r.inner] > 0.0f; };
    const double violations = block_sum(r.n, [&](i64 j) { return violates(j) ? 1.0 : 0.0; });
    for (i64 j = DNL_THREAD; j < r.n; j += 128) {
      const float own = j == label ? -d * static_cast<float>(violations) : violates(j) ? d : 0.0f;
      put(row(r.dx, line.m) + line.at + j * r.inner, own, r.acc);
    }
  });
}

// ---- sparsemax -----------------------------------------------------------------------------------------------------

// The projection of a line: its threshold. A number is in the support if 1 + k x > the sum of the k that are not
// smaller; all are taken relative to the largest.
inline double project(i64 n, const float* x, float* y) {
  const float top = block_max(n, x).value;
  if (top != top || !usual(top)) {
    const double count = count_inf(n, x);
    for (i64 i = DNL_THREAD; i < n; i += 128)
      y[i] = top != top ? top : x[i] == DNL_INFINITY ? static_cast<float>(1.0 / count) : 0.0f;
    return top;
  }
  auto supports = [&](i64 i) {
    const double mine = static_cast<double>(x[i]) - top;
    double sum = 0, k = 0;
    for (i64 j = 0; j < n; ++j)
      if (x[j] >= x[i]) sum += static_cast<double>(x[j]) - top, k += 1;
    return 1 + k * mine > sum;
  };
  const double count = block_sum(n, [&](i64 i) { return supports(i) ? 1.0 : 0.0; });
  const double sum = block_sum(n, [&](i64 i) { return supports(i) ? static_cast<double>(x[i]) - top : 0.0; });
  const double tau = (sum - 1) / count;
  for (i64 i = DNL_THREAD; i < n; i += 128) {
    const double p = static_cast<double>(x[i]) - top - tau;
    y[i] = p > 0 ? static_cast<float>(p) : 0.0f;
  }
  return tau + top;
}
DNL_KERNEL(sparsemax, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) { project(r.n, row(r.x, line.m) + line.at, row(r.y, line.m) + line.at); });
}
DNL_KERNEL(sparsemax_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float *p = row(r.y, line.m) + line.at, *dy = row(r.dy, line.m) + line.at;
    const double support = block_sum(r.n, [&](i64 i) { return p[i] != 0.0f ? 1.0 : 0.0; });
    const double sum = block_sum(r.n, [&](i64 i) { return p[i] != 0.0f ? static_cast<double>(dy[i]) : 0.0; });
    const float mean = support > 0 ? static_cast<float>(sum / support) : 0.0f;
    for (i64 i = DNL_THREAD; i < r.n; i += 128)
      put(row(r.dx, line.m) + line.at + i, p[i] != 0.0f ? dy[i] - mean : 0.0f, r.acc);
  });
}
// Its loss to y, the projection to z; targets as the entries of `restricted`.
DNL_KERNEL(sparsemax_loss, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    float* p = row(r.z, line.m) + line.at;
    const i64 first = word_of(r, line.m), count = word_of(r, line.m + 1) - first;
    const double tau = project(r.n, x, p), k = static_cast<double>(count);
    DNL_BARRIER();
    double loss = 0.5 / k + block_sum(r.n, [&](i64 i) { return 0.5 * p[i] * p[i]; });
    loss -= block_sum(count, [&](i64 i) { return (x[word_of(r, first + i)] - tau) / k; });
    if (DNL_THREAD == 0) row(r.y, line.m)[line.l] = loss > 0 || loss != loss ? static_cast<float>(loss) : 0.0f;
  });
}
DNL_KERNEL(sparsemax_loss_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_number(r, [&](const Line& line, i64 k) {
    const i64 first = word_of(r, line.m), end = word_of(r, line.m + 1);
    const float d = row(r.dy, line.m)[line.l];
    float own = d * row(r.z, line.m)[line.at + k];
    for (i64 i = first; i < end; ++i)
      if (word_of(r, i) == k) own -= d / static_cast<float>(end - first);
    put(row(r.dx, line.m) + line.at + k, own, r.acc);
  });
}

// ---- sums over whole lines -----------------------------------------------------------------------------------------

// The length of each line.
DNL_KERNEL(line_norm, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    const double sum = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]) * x[i]; });
    if (DNL_THREAD == 0) row(r.y, line.m)[line.l] = static_cast<float>(sqrt(sum));
  });
}
// dx = x times the line's factor: z; `what`: dy / y, 0 where y is 0.
DNL_KERNEL(scale_lines, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_number(r, [&](const Line& line, i64 k) {
    float f;
    if (r.what) {
      const float y = row(r.y, line.m)[line.l];
      f = y == 0.0f ? 0.0f : row(r.dy, line.m)[line.l] / y;
    } else {
      f = row(r.z, line.m)[line.l];
    }
    put(row(r.dx, line.m) + line.at + k, f * row(r.x, line.m)[line.at + k], r.acc);
  });
}

// ---- places: those of the best are kept in z, as integers ----------------------------------------------------------

inline u32 get_place(const float* at) { return *reinterpret_cast<const u32*>(at); }
inline void put_place(float* at, i64 place) { *reinterpret_cast<u32*>(at) = static_cast<u32>(place); }
// Of n numbers `step` apart the first of the best, NaN above all; the largest, or the smallest.
inline i64 best_of(const float* x, i64 n, i64 step, bool largest) {
  i64 best = 0;
  for (i64 k = 1; k < n; ++k) {
    const float v = x[k * step], b = x[best * step];
    if (b != b) break;
    if (v != v || (largest ? v > b : v < b)) best = k;
  }
  return best;
}
// `what`: the largest.
DNL_KERNEL(best, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    const i64 k = best_of(x, r.n, r.inner, r.what != 0);
    row(r.y, line.m)[line.l] = x[k * r.inner];
    put_place(row(r.z, line.m) + line.l, k);
  });
}
DNL_KERNEL(best_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    const i64 k = get_place(row(r.z, line.m) + line.l);
    row(r.dx, line.m)[line.at + k * r.inner] += row(r.dy, line.m)[line.l];
  });
}
DNL_KERNEL(argmax, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    const i64 best = best_of(row(r.x, line.m) + line.at, r.n, r.inner, true);
    for (i64 k = 0; k < r.n; ++k) row(r.y, line.m)[line.at + k * r.inner] = k == best ? 1.0f : 0.0f;
  });
}
// A number that orders as the float does, NaN above all; -0 and 0 are equal.
inline u32 order_of(const float* at) {
  const u32 bits = *at == 0.0f ? 0u : get_place(at);
  if (*at != *at) return 0xffffffffu;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
// The `what` best of each line, in their order: line l of y and z has so many numbers.
DNL_KERNEL(best_few, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    const float* x = row(r.x, line.m) + line.at;
    i64 to = line.l / r.inner * r.what * r.inner + line.l % r.inner;
    for (i64 k = 0; k < r.n; ++k) {
      i64 better = 0;
      const u32 mine = order_of(x + k * r.inner);
      for (i64 j = 0; j < r.n; ++j) {
        const u32 other = order_of(x + j * r.inner);
        better += other > mine || (other == mine && j < k);
      }
      if (better >= r.what) continue;
      row(r.y, line.m)[to] = x[k * r.inner];
      put_place(row(r.z, line.m) + to, k);
      to += r.inner;
    }
  });
}
DNL_KERNEL(best_few_back, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    i64 from = line.l / r.inner * r.what * r.inner + line.l % r.inner;
    for (i64 j = 0; j < r.what; ++j, from += r.inner)
      row(r.dx, line.m)[line.at + get_place(row(r.z, line.m) + from) * r.inner] += row(r.dy, line.m)[from];
  });
}

// Running sums of x to y; `what`: from the last number back.
DNL_KERNEL(running_sums, Lines) {
  const Lines& r = records[DNL_RECORD];
  each_line_of_thread(r, [&](const Line& line) {
    float sum = 0;
    for (i64 k = 0; k < r.n; ++k) {
      const i64 at = line.at + (r.what ? r.n - 1 - k : k) * r.inner;
      sum += row(r.x, line.m)[at];
      put(row(r.y, line.m) + at, sum, r.acc);
    }
  });
}

// ---- layer norm ----------------------------------------------------------------------------------------------------

DNL_KERNEL(layer_norm, LayerNorm) {
  const LayerNorm& r = records[DNL_RECORD];
  const double n = static_cast<double>(r.n);
  for (i64 k = DNL_BLOCK; k < r.members * r.batch; k += DNL_BLOCKS) {
    const i64 m = k / r.batch, e = k % r.batch;
    const float* x = row(r.x, m) + e * r.step_x;
    // The second look makes the mean of equal numbers exactly that number.
    const float first = static_cast<float>(block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]); }) / n);
    const double rest = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i] - first); }) / n;
    const float mean = static_cast<float>(first + rest);
    const double squares = block_sum(r.n, [&](i64 i) {
      const float d = x[i] - mean;
      return static_cast<double>(d * d);  // of differences too small to be divided by, 0, as on the CPU
    });
    const double var = squares / n;
    const float rstd = var > 0 ? static_cast<float>(1.0 / sqrt(var)) : var == 0 ? 0.0f : DNL_NAN;
    const float *g = row(r.g, m) + e * r.step_g, *b = row(r.b, m) + e * r.step_b;
    for (i64 i = DNL_THREAD; i < r.n; i += 128)
      row(r.y, m)[e * r.n + i] = g[i % r.n_g] * ((x[i] - mean) * rstd) + b[i % r.n_b];
    if (DNL_THREAD != 0) continue;
    row(r.stats, m)[2 * e] = mean;
    row(r.stats, m)[2 * e + 1] = rstd;
  }
}

// A block does a member's element, or all of them where x repeats.
DNL_KERNEL(layer_norm_back, LayerNormBack) {
  const LayerNormBack& r = records[DNL_RECORD];
  const i64 own = r.step_x ? r.batch : 1, each = r.batch / own;
  const double n = static_cast<double>(r.n);
  for (i64 k = DNL_BLOCK; k < r.members * own; k += DNL_BLOCKS) {
    const i64 m = k / own;
    for (i64 e = k % own * each; e < (k % own + 1) * each; ++e) {
      const float *x = row(r.x, m) + e * r.step_x, *g = row(r.g, m) + e * r.step_g, *dy = row(r.dy, m) + e * r.n;
      const float mean = row(r.stats, m)[2 * e], rstd = row(r.stats, m)[2 * e + 1];
      auto normal = [&](i64 i) { return (x[i] - mean) * rstd; };
      auto into = [&](i64 i) { return static_cast<double>(dy[i]) * g[i % r.n_g]; };
      const float m1 = static_cast<float>(block_sum(r.n, into) / n);
      const float m2 = static_cast<float>(block_sum(r.n, [&](i64 i) { return into(i) * normal(i); }) / n);
      for (i64 i = DNL_THREAD; i < r.n; i += 128)
        put(row(r.dx, m) + e * r.step_x + i, rstd * (dy[i] * g[i % r.n_g] - m1 - normal(i) * m2),
            r.acc || (each > 1 && e > 0));
    }
  }
}

// A block sums what goes to one number.
DNL_KERNEL(layer_norm_weight, LayerNormWeight) {
  const LayerNormWeight& r = records[DNL_RECORD];
  const i64 targets = (r.for_all ? 1 : r.members) * r.own * r.size;
  const i64 members = r.for_all ? r.members : 1, elements = r.batch / r.own, repeats = r.n / r.size;
  for (i64 k = DNL_BLOCK; k < targets; k += DNL_BLOCKS) {
    const i64 first = k / (r.own * r.size), block = k / r.size % r.own, i = k % r.size;
    const double sum = block_sum(members * elements * repeats, [&](i64 s) {
      const i64 m = first + s / (elements * repeats), e = block * elements + s / repeats % elements;
      const i64 at = s % repeats * r.size + i;
      const float dy = row(r.dy, m)[e * r.n + at];
      if (!r.gain) return static_cast<double>(dy);
      const float* stats = row(r.stats, m) + 2 * e;
      return static_cast<double>(dy) * ((row(r.x, m)[e * r.step_x + at] - stats[0]) * stats[1]);
    });
    if (DNL_THREAD == 0) put(row(r.to, first) + block * r.size + i, static_cast<float>(sum), true);
  }
}

}  // namespace dnl::device
