// Loops of the elementwise formulas, and their tables. Part of isa_body.h: included there alone.

// Attributes are copied to the stack, where stores to y cannot change them; null means the defaults.
struct Attributes {
  float v[2];
  template <class S>
  static Attributes of(const float* a) {
    constexpr int n = S::info.n_attr();
    Attributes r = {{S::info.attr[0].value, S::info.attr[1].value}};
    if (a)
      for (int i = 0; i < n; ++i) r.v[i] = a[i];
    return r;
  }
};

template <class S>
struct UnaryLoops {
  static void fwd(idx n, const float* x, float* y, const float* attr) {
    const Attributes a = Attributes::of<S>(attr);
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, S::fwd(w.load(x + i), a.v)); });
  }
  static void bwd(idx n, const float* x, const float* y, const float* dy, float* dx, const float* attr, bool acc) {
    const Attributes a = Attributes::of<S>(attr);
    if (acc)
      for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
        w.store(dx + i, w.load(dx + i) + S::bwd(w.load(x + i), w.load(y + i), w.load(dy + i), a.v));
      });
    else
      for_lanes(n, [&](idx i, auto w)
                       DNL_LAMBDA { w.store(dx + i, S::bwd(w.load(x + i), w.load(y + i), w.load(dy + i), a.v)); });
  }
};

template <class S>
struct BwdU {
  DNL_INL_MEMBER static F of(F u, F v, F y, F dy, const float* a) { return S::bwd_u(u, v, y, dy, a); }
};
template <class S>
struct BwdV {
  DNL_INL_MEMBER static F of(F u, F v, F y, F dy, const float* a) { return S::bwd_v(u, v, y, dy, a); }
};

template <class S>
struct BinaryLoops {
  // One number for all i is loaded once: SU, SV are the strides.
  template <int Stride, class Wd>
  DNL_INL_MEMBER static F at(const float* p, idx i, Wd w) {
    return Stride ? w.load(p + i) : F(p[0]);
  }
  template <int SU, int SV>
  static void fwd_strided(idx n, const float* u, const float* v, float* y, const Attributes& a) {
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA { w.store(y + i, S::fwd(at<SU>(u, i, w), at<SV>(v, i, w), a.v)); });
  }
  static void fwd(idx n, const float* u, idx su, const float* v, idx sv, float* y, const float* attr) {
    const Attributes a = Attributes::of<S>(attr);
    if (su && sv) return fwd_strided<1, 1>(n, u, v, y, a);
    if (su) return fwd_strided<1, 0>(n, u, v, y, a);
    if (sv) return fwd_strided<0, 1>(n, u, v, y, a);
    fwd_strided<0, 0>(n, u, v, y, a);
  }

  // One gradient. When its operand is one number (SG = 0) the terms are summed, in blocks, the blocks in double.
  template <class D, int SU, int SV, int SG>
  static void bwd_one(idx n, const float* u, const float* v, const float* y, const float* dy, float* d, bool acc,
                      const Attributes& a) {
    if (SG == 0) {
      double total = 0;
      for (idx from = 0; from < n; from += kBlock) {
        const idx m = n - from < kBlock ? n - from : kBlock;
        F sum = F(0.0f);
        for_lanes(m, [&](idx j, auto w) DNL_LAMBDA {
          const idx i = from + j;
          sum = sum + w.only(D::of(at<SU>(u, i, w), at<SV>(v, i, w), w.load(y + i), w.load(dy + i), a.v));
        });
        total += hsum(sum);
      }
      d[0] = acc ? d[0] + static_cast<float>(total) : static_cast<float>(total);
    } else if (acc) {
      for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
        w.store(d + i, w.load(d + i) + D::of(at<SU>(u, i, w), at<SV>(v, i, w), w.load(y + i), w.load(dy + i), a.v));
      });
    } else {
      for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
        w.store(d + i, D::of(at<SU>(u, i, w), at<SV>(v, i, w), w.load(y + i), w.load(dy + i), a.v));
      });
    }
  }
  template <int SU, int SV>
  static void bwd_strided(idx n, const float* u, const float* v, const float* y, const float* dy, float* du, bool acc_u,
                          float* dv, bool acc_v, const Attributes& a) {
    if (SU && SV && du && dv) {  // in pieces, so that the second reads from the nearest cache what the first has read
      constexpr idx kPiece = 64 * F::W;
      for (idx i = 0; i < n; i += kPiece) {
        const idx m = n - i < kPiece ? n - i : kPiece;
        bwd_one<BwdU<S>, SU, SV, SU>(m, u + i, v + i, y + i, dy + i, du + i, acc_u, a);
        bwd_one<BwdV<S>, SU, SV, SV>(m, u + i, v + i, y + i, dy + i, dv + i, acc_v, a);
      }
      return;
    }
    if (du) bwd_one<BwdU<S>, SU, SV, SU>(n, u, v, y, dy, du, acc_u, a);
    if (dv) bwd_one<BwdV<S>, SU, SV, SV>(n, u, v, y, dy, dv, acc_v, a);
  }
  static void bwd(idx n, const float* u, idx su, const float* v, idx sv, const float* y, const float* dy, float* du,
                  bool acc_u, float* dv, bool acc_v, const float* attr) {
    const Attributes a = Attributes::of<S>(attr);
    if (su && sv) return bwd_strided<1, 1>(n, u, v, y, dy, du, acc_u, dv, acc_v, a);
    if (su) return bwd_strided<1, 0>(n, u, v, y, dy, du, acc_u, dv, acc_v, a);
    if (sv) return bwd_strided<0, 1>(n, u, v, y, dy, du, acc_u, dv, acc_v, a);
    bwd_strided<0, 0>(n, u, v, y, dy, du, acc_u, dv, acc_v, a);
  }
};

// The tables. Each registration line gives its struct the next number of its kind. (The compiler's counter counts the
// lines; unary formulas come first in formulas.h, binary ones after them.)
namespace formulas {
template <int Id>
struct UnaryAt;
template <int Id>
struct BinaryAt;
#define DNL_UNARY(S)                     \
  template <>                            \
  struct UnaryAt<__COUNTER__ - kFirst> { \
    using Formula = S;                   \
  };
#define DNL_BINARY(S)                           \
  template <>                                   \
  struct BinaryAt<__COUNTER__ - kFirstBinary> { \
    using Formula = S;                          \
  };
#define DNL_UNARY_END                               \
  constexpr int kUnaryCount = __COUNTER__ - kFirst; \
  constexpr int kFirstBinary = __COUNTER__ + 1;
constexpr int kFirst = __COUNTER__ + 1;
#include "kernels/formulas.h"
constexpr int kBinaryCount = __COUNTER__ - kFirstBinary;
#undef DNL_UNARY
#undef DNL_UNARY_END
#undef DNL_BINARY

// Table<N> expands to rows 0 .. N-1.
template <int N, int... Ids>
struct UnaryTable : UnaryTable<N - 1, N - 1, Ids...> {};
template <int... Ids>
struct UnaryTable<0, Ids...> {
  template <int Id>
  using Loops = UnaryLoops<typename UnaryAt<Id>::Formula>;
  static constexpr UnaryKernel rows[] = {{UnaryAt<Ids>::Formula::info.name, Loops<Ids>::fwd, Loops<Ids>::bwd,
                                          UnaryAt<Ids>::Formula::info.n_attr(), UnaryAt<Ids>::Formula::info.reads}...};
};
template <int N, int... Ids>
struct BinaryTable : BinaryTable<N - 1, N - 1, Ids...> {};
template <int... Ids>
struct BinaryTable<0, Ids...> {
  template <int Id>
  using Loops = BinaryLoops<typename BinaryAt<Id>::Formula>;
  static constexpr BinaryKernel rows[] = {{BinaryAt<Ids>::Formula::info.name, Loops<Ids>::fwd, Loops<Ids>::bwd,
                                           BinaryAt<Ids>::Formula::info.n_attr(),
                                           BinaryAt<Ids>::Formula::info.reads}...};
};
}  // namespace formulas
