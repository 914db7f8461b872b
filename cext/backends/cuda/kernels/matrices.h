// Inverses and determinants of square matrices, by LU factors with row exchanges, in double precision: a matrix a
// thread. And softmax with upper bounds, a member a thread.
// Who may include: kernels/all.h. Includes: memory.h, functions.h.
#pragma once
#include "functions.h"
#include "memory.h"

namespace dnl::device {

// A = P^T L U of one matrix; column-major, L below the diagonal.
struct Factors {
  i64 n;
  double *a, *v;
  i32* exchanged;

  Factors(const Matrices& r, i64 which) : n(r.n) {
    char* work = reinterpret_cast<char*>(r.work) + which * r.work_bytes;
    a = reinterpret_cast<double*>(work);
    v = a + n * n;
    exchanged = reinterpret_cast<i32*>(v + n);
  }
  double& at(i64 i, i64 j) const { return a[j * n + i]; }
  void factor(const float* x) const {
    for (i64 i = 0; i < n * n; ++i) a[i] = x[i];
    for (i64 k = 0; k < n; ++k) {
      i64 best = k;
      for (i64 i = k + 1; i < n; ++i)
        if (fabs(at(i, k)) > fabs(at(best, k))) best = i;
      exchanged[k] = static_cast<i32>(best);
      for (i64 j = 0; best != k && j < n; ++j) {
        const double kept = at(k, j);
        at(k, j) = at(best, j);
        at(best, j) = kept;
      }
      if (at(k, k) == 0) continue;
      for (i64 i = k + 1; i < n; ++i) at(i, k) /= at(k, k);
      for (i64 j = k + 1; j < n; ++j)
        for (i64 i = k + 1; i < n; ++i) at(i, j) -= at(i, k) * at(k, j);
    }
  }
  // Column c of the inverse, to v.
  void column(i64 c) const {
    for (i64 i = 0; i < n; ++i) v[i] = i == c;
    for (i64 k = 0; k < n; ++k) {
      const double kept = v[k];
      v[k] = v[exchanged[k]];
      v[exchanged[k]] = kept;
    }
    for (i64 k = 0; k < n; ++k)
      for (i64 i = k + 1; i < n; ++i) v[i] -= at(i, k) * v[k];
    for (i64 k = n; k-- > 0;) {
      v[k] /= at(k, k);
      for (i64 i = 0; i < k; ++i) v[i] -= at(i, k) * v[k];
    }
  }
};

template <class F>
inline void each_matrix(const Matrices& r, F f) {
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.batch; i += s.step) f(Factors(r, i), i / r.batch, i % r.batch);
}

DNL_KERNEL(inverse, Matrices) {
  const Matrices& r = records[DNL_RECORD];
  each_matrix(r, [&](const Factors& f, i64 m, i64 e) {
    f.factor(row(r.x, m) + e * r.n * r.n);
    for (i64 c = 0; c < r.n; ++c) {
      f.column(c);
      for (i64 i = 0; i < r.n; ++i) row(r.y, m)[(e * r.n + c) * r.n + i] = static_cast<float>(f.v[i]);
    }
  });
}
DNL_KERNEL(log_determinant, Matrices) {
  const Matrices& r = records[DNL_RECORD];
  each_matrix(r, [&](const Factors& f, i64 m, i64 e) {
    f.factor(row(r.x, m) + e * r.n * r.n);
    double sum = 0;
    for (i64 k = 0; k < r.n; ++k) sum += log(fabs(f.at(k, k)));
    row(r.y, m)[e] = static_cast<float>(sum);
  });
}
DNL_KERNEL(log_determinant_back, Matrices) {
  const Matrices& r = records[DNL_RECORD];
  each_matrix(r, [&](const Factors& f, i64 m, i64 e) {
    f.factor(row(r.x, m) + e * r.n * r.n);
    for (i64 c = 0; c < r.n; ++c) {
      f.column(c);
      for (i64 i = 0; i < r.n; ++i)
        put(row(r.dx, m) + (e * r.n + i) * r.n + c, row(r.dy, m)[e] * static_cast<float>(f.v[i]), r.acc);
    }
  });
}

// ---- softmax with upper bounds u -----------------------------------------------------------------------------------

// Entries whose bound is tightest relative to e^x are cut off one after another, while their share of what is left
// exceeds the bound.
inline void bound_softmax(i64 n, const float* x, const float* u, float* p) {
  float top = x[0], bound = u[0];
  i64 infinite = 0;
  for (i64 i = 0; i < n; ++i) {
    top = x[i] > top || x[i] != x[i] ? x[i] : top;
    bound = u[i] != u[i] ? u[i] : bound;
    infinite += x[i] == DNL_INFINITY;
  }
  if (!(top - top == 0.0f) || bound != bound) {
    for (i64 i = 0; i < n; ++i)
      p[i] = top != top                            ? top
             : bound != bound && top - top == 0.0f ? bound
             : x[i] == DNL_INFINITY                ? 1.0f / static_cast<float>(infinite)
                                                   : 0.0f;
    return;
  }
  auto weight = [&](i64 i) { return exp(static_cast<double>(x[i]) - top); };
  for (i64 i = 0; i < n; ++i) p[i] = DNL_NAN;  // not cut off: bounds are no NaN
  double mass = 1, rest = 0;
  for (;;) {
    i64 next = -1;
    double tightest = 0;
    rest = 0;
    for (i64 i = 0; i < n; ++i) {
      if (p[i] == p[i]) continue;
      const double w = weight(i), tight = w > 0 ? u[i] / w : static_cast<double>(DNL_INFINITY);
      rest += w;
      if (next < 0 || tight < tightest) next = i, tightest = tight;
    }
    if (next < 0 || !(u[next] * rest < weight(next) * mass)) break;
    p[next] = u[next];
    mass -= u[next];
  }
  const double left = rest > 0 ? rest : 1.0;  // where all that is left weighs nothing, it is 0
  for (i64 i = 0; i < n; ++i)
    if (p[i] != p[i]) p[i] = static_cast<float>(weight(i) * (mass > 0 ? mass : 0.0) / left);
}

DNL_KERNEL(bounded_softmax, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < r.members * r.batch; k += s.step) {
    const i64 m = k / r.batch, e = k % r.batch;
    bound_softmax(r.n, row(r.u, m) + e * r.step_u, row(r.v, m) + e * r.step_v, row(r.y, m) + e * r.n);
  }
}
// Bound entries pass dy to the bound, less what the free ones lose with the mass.
DNL_KERNEL(bounded_softmax_back, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 m = s.first; m < r.members; m += s.step)
    for (i64 e = 0; e < r.batch; ++e) {
      const float *u = row(r.v, m) + e * r.step_v, *p = row(r.y, m) + e * r.n, *dy = row(r.dy, m) + e * r.n;
      double sum = 0, mass = 0;
      for (i64 i = 0; i < r.n; ++i)
        if (p[i] != u[i]) sum += static_cast<double>(p[i]) * dy[i], mass += p[i];
      const float mean = mass > 0 ? static_cast<float>(sum / mass) : 0.0f;
      for (i64 i = 0; i < r.n; ++i) {
        const bool bound = p[i] == u[i];
        if (wanted(r.du))
          put(row(r.du, m) + e * r.step_u + i, bound ? 0.0f : p[i] * (dy[i] - mean), r.acc_u || (!r.step_u && e > 0));
        if (wanted(r.dv))
          put(row(r.dv, m) + e * r.step_v + i, bound ? dy[i] - mean : 0.0f, r.acc_v || (!r.step_v && e > 0));
      }
    }
}

}  // namespace dnl::device
