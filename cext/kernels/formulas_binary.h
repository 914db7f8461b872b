// The elementwise functions of two arguments; formulas.h includes this file and tells the rules.
//
// bwd_u and bwd_v are the gradients of the first and the second argument.

struct Add {
  static constexpr FormulaInfo info = {"add", "x + y", {}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return u + v;
  }
  template <class T>
  static T bwd_u(T, T, T, T dy, const float*) {
    return dy;
  }
  template <class T>
  static T bwd_v(T, T, T, T dy, const float*) {
    return dy;
  }
};
DNL_BINARY(Add)

struct Sub {
  static constexpr FormulaInfo info = {"sub", "x - y", {}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return u - v;
  }
  template <class T>
  static T bwd_u(T, T, T, T dy, const float*) {
    return dy;
  }
  template <class T>
  static T bwd_v(T, T, T, T dy, const float*) {
    return -dy;
  }
};
DNL_BINARY(Sub)

struct Cmult {
  static constexpr FormulaInfo info = {
      "cmult", "Product of x and y, element by element.", {}, false, kReadsX | kReadsV};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return u * v;
  }
  template <class T>
  static T bwd_u(T, T v, T, T dy, const float*) {
    return dy * v;
  }
  template <class T>
  static T bwd_v(T u, T, T, T dy, const float*) {
    return dy * u;
  }
};
DNL_BINARY(Cmult)

struct Cdiv {
  static constexpr FormulaInfo info = {"cdiv", "x divided by y, element by element."};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return u / v;
  }
  template <class T>
  static T bwd_u(T, T v, T, T dy, const float*) {
    return times(dy, T(1.0f) / v);
  }
  template <class T>
  static T bwd_v(T, T v, T y, T dy, const float*) {
    return times(dy, -y / v);
  }
};
DNL_BINARY(Cdiv)

struct Bmin {
  static constexpr FormulaInfo info = {
      "bmin", "The smaller of x and y, element by element. Where they are equal, x gets the gradient."};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return select(u <= v, u, select(u == u, v, u));
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return select(u <= v, dy, T(0.0f));
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float*) {
    return select(u <= v, T(0.0f), dy);
  }
};
DNL_BINARY(Bmin)

struct Bmax {
  static constexpr FormulaInfo info = {
      "bmax", "The larger of x and y, element by element. Where they are equal, x gets the gradient."};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return select(u >= v, u, select(u == u, v, u));
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return select(u >= v, dy, T(0.0f));
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float*) {
    return select(u >= v, T(0.0f), dy);
  }
};
DNL_BINARY(Bmax)

struct Pow {
  static constexpr FormulaInfo info = {"pow",
                                       "x to the power of y, element by element. y has a gradient only where x > 0."};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return vpow(u, v);
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return select(v == T(0.0f), T(0.0f), times(dy, v * vpow(u, v - T(1.0f))));
  }
  template <class T>
  static T bwd_v(T u, T, T y, T dy, const float*) {
    return select(u > T(0.0f), times(dy, y * vlog(select(u > T(0.0f), u, T(1.0f)))), T(0.0f));
  }
};
DNL_BINARY(Pow)

// ---- losses, element by element: distances and ops of ops/ sum them -------------------------------------------------
struct SquaredDifference {
  static constexpr FormulaInfo info = {"squared_difference", "(u - v) squared", {}, kInternal, kReadsAll,
                                       "squared_distance"};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return (u - v) * (u - v);
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return dy * T(2.0f) * (u - v);
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float*) {
    return dy * T(2.0f) * (v - u);
  }
};
DNL_BINARY(SquaredDifference)

struct AbsDifference {
  static constexpr FormulaInfo info = {
      "abs_difference", "|u - v|; gradient 0 where they are equal", {}, kInternal, kReadsAll, "l1_distance"};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return vabs(u - v);
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return select(u > v, dy, select(u < v, -dy, T(0.0f)));
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float*) {
    return select(u > v, -dy, select(u < v, dy, T(0.0f)));
  }
};
DNL_BINARY(AbsDifference)

struct Huber {
  static constexpr FormulaInfo info = {"huber",         "d = u - v: d * d / 2 where |d| <= c, else c |d| - c * c / 2",
                                       {{"c", 1.345f}}, kInternal,
                                       kReadsAll,       "huber_distance"};
  template <class T>
  static T fwd(T u, T v, const float* a) {
    const T d = vabs(u - v), c = T(a[0]);
    return select(d <= c, T(0.5f) * d * d, c * d - T(0.5f) * c * c);
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float* a) {
    return dy * vmin(T(a[0]), vmax(-T(a[0]), u - v));
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float* a) {
    return dy * vmin(T(a[0]), vmax(-T(a[0]), v - u));
  }
};
DNL_BINARY(Huber)

struct BinaryLogLoss {
  static constexpr FormulaInfo info = {"binary_log_loss_terms",
                                       "-(v log u + (1 - v) log(1 - u)), u a probability, v the target",
                                       {},
                                       kInternal,
                                       kReadsAll,
                                       "binary_log_loss"};
  static constexpr float kTiny = 1.17549435e-38f;  // logs are clamped here, so a sure mistake costs 87.3 and not inf
  template <class T>
  static T fwd(T u, T v, const float*) {
    return -(v * vlog(vmax(T(kTiny), u)) + (T(1.0f) - v) * vlog(vmax(T(kTiny), T(1.0f) - u)));
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return times(dy, (T(1.0f) - v) / vmax(T(kTiny), T(1.0f) - u) - v / vmax(T(kTiny), u));
  }
  template <class T>
  static T bwd_v(T u, T, T, T dy, const float*) {
    return dy * (vlog(vmax(T(kTiny), T(1.0f) - u)) - vlog(vmax(T(kTiny), u)));
  }
};
DNL_BINARY(BinaryLogLoss)

struct PairwiseRank {
  static constexpr FormulaInfo info = {"pairwise_rank", "max(0, m - u + v)", {{"m", 1.0f}},
                                       kInternal,       kReadsAll,           "pairwise_rank_loss"};
  template <class T>
  static T fwd(T u, T v, const float* a) {
    return vmax(T(0.0f), T(a[0]) - u + v);
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float* a) {
    return select(T(a[0]) - u + v > T(0.0f), -dy, T(0.0f));
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float* a) {
    return select(T(a[0]) - u + v > T(0.0f), dy, T(0.0f));
  }
};
DNL_BINARY(PairwiseRank)

struct Poisson {
  static constexpr FormulaInfo info = {
      "poisson", "-log of the Poisson probability of v at rate e ** u: e ** u - v u + lgamma(v + 1)",
      {},        kInternal,
      kReadsAll, "poisson_loss"};
  template <class T>
  static T fwd(T u, T v, const float*) {
    return vexp(u) - v * u + vlgamma(v + T(1.0f));
  }
  template <class T>
  static T bwd_u(T u, T v, T, T dy, const float*) {
    return times(dy, vexp(u) - v);
  }
  template <class T>
  static T bwd_v(T u, T v, T, T dy, const float*) {
    return times(dy, vdigamma(v + T(1.0f)) - u);
  }
};
DNL_BINARY(Poisson)
