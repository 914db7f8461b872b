// The elementwise functions: one struct each, with its one line of registration. Adding one is adding a struct here
// (or in formulas_trig.h, formulas_binary.h, which are parts of this file).
//
// A struct says what it is (info: name, doc, attributes with defaults), its value and its derivative times the incoming
// gradient. T is a vector of floats in the kernels and a double in the tests, so formulas are written without branches
// (select) and with the v... functions of mathfn.h; `a` holds the attributes. In bwd x is the argument, y the value, dy
// the incoming gradient. At a kink the gradient is one of the one-sided ones (0 where that is natural), never NaN.
//
// DNL_UNARY(S) and DNL_BINARY(S) are defined by whoever includes this file, and the order of the lines is the id.
// Included several times, so without guard: by isa_body.h inside a namespace of its own (the lines make the loops of
// that instruction set), by ops/ (they make the op entries), by tests. Includes: nothing; include formula_info.h first.

// dy times d, but 0 where dy is 0: an infinite derivative must not turn "nothing comes in" into NaN.
template <class T>
static inline T times(T dy, T d) {
  return select(dy == T(0.0f), dy, dy * d);
}

// ---- signs, powers and roots --------------------------------------------------------------------------------------
struct Negate {
  static constexpr FormulaInfo info = {"negate", "-x", {}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T x, const float*) {
    return -x;
  }
  template <class T>
  static T bwd(T, T, T dy, const float*) {
    return -dy;
  }
};
DNL_UNARY(Negate)

struct AddConst {
  static constexpr FormulaInfo info = {"add_const", "x + c", {{"c", 0.0f}}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T x, const float* a) {
    return x + T(a[0]);
  }
  template <class T>
  static T bwd(T, T, T dy, const float*) {
    return dy;
  }
};
DNL_UNARY(AddConst)

struct ConstMinus {
  static constexpr FormulaInfo info = {"const_minus", "c - x", {{"c", 0.0f}}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T x, const float* a) {
    return T(a[0]) - x;
  }
  template <class T>
  static T bwd(T, T, T dy, const float*) {
    return -dy;
  }
};
DNL_UNARY(ConstMinus)

struct Scale {
  static constexpr FormulaInfo info = {"scale", "c * x", {{"c", 1.0f}}, kInternal, kReadsNothing};
  template <class T>
  static T fwd(T x, const float* a) {
    return T(a[0]) * x;
  }
  template <class T>
  static T bwd(T, T, T dy, const float* a) {
    return T(a[0]) * dy;
  }
};
DNL_UNARY(Scale)

struct ConstDiv {
  static constexpr FormulaInfo info = {"const_div", "c / x", {{"c", 1.0f}}, kInternal};
  template <class T>
  static T fwd(T x, const float* a) {
    return T(a[0]) / x;
  }
  template <class T>
  static T bwd(T x, T y, T dy, const float*) {
    return times(dy, -y / x);
  }
};
DNL_UNARY(ConstDiv)

struct PowConst {
  static constexpr FormulaInfo info = {"pow_const", "x ** c", {{"c", 1.0f}}, kInternal};
  template <class T>
  static T fwd(T x, const float* a) {
    return a[0] == 2.0f ? x * x : a[0] == 1.0f ? x : a[0] == 3.0f ? x * x * x : vpow(x, T(a[0]));
  }
  template <class T>
  static T bwd(T x, T, T dy, const float* a) {
    if (a[0] == 0.0f) return T(0.0f);
    if (a[0] == 2.0f) return times(dy, x + x);
    return times(dy, T(a[0]) * vpow(x, T(a[0] - 1.0f)));
  }
};
DNL_UNARY(PowConst)

struct ConstPow {
  static constexpr FormulaInfo info = {"const_pow", "c ** x", {{"c", 1.0f}}, kInternal};
  template <class T>
  static T fwd(T x, const float* a) {
    return vpow(T(a[0]), x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float* a) {
    if (a[0] <= 0.0f) return T(0.0f);  // as in pow
    return times(dy, y * vlog(T(a[0])));
  }
};
DNL_UNARY(ConstPow)

struct Square {
  static constexpr FormulaInfo info = {"square", "Square, x * x.", {}, false, kReadsX};
  template <class T>
  static T fwd(T x, const float*) {
    return x * x;
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * (x + x);
  }
};
DNL_UNARY(Square)

struct Cube {
  static constexpr FormulaInfo info = {"cube", "Cube, x * x * x.", {}, false, kReadsX};
  template <class T>
  static T fwd(T x, const float*) {
    return x * x * x;
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * (T(3.0f) * x * x);
  }
};
DNL_UNARY(Cube)

struct Sqrt {
  static constexpr FormulaInfo info = {"sqrt", "Square root; NaN for negative x. The gradient at 0 is infinite."};
  template <class T>
  static T fwd(T x, const float*) {
    return vsqrt(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return times(dy, T(0.5f) / y);
  }
};
DNL_UNARY(Sqrt)

struct Rsqrt {
  static constexpr FormulaInfo info = {"rsqrt",
                                       "One over the square root, 1 / sqrt(x): infinite at 0, NaN for negative x."};
  template <class T>
  static T fwd(T x, const float*) {
    return T(1.0f) / vsqrt(x);
  }
  template <class T>
  static T bwd(T x, T y, T dy, const float*) {
    return times(dy, T(-0.5f) * y / x);
  }
};
DNL_UNARY(Rsqrt)

struct Reciprocal {
  static constexpr FormulaInfo info = {"reciprocal", "One over x, infinite at 0."};
  template <class T>
  static T fwd(T x, const float*) {
    return T(1.0f) / x;
  }
  template <class T>
  static T bwd(T x, T y, T dy, const float*) {
    return times(dy, -y / x);
  }
};
DNL_UNARY(Reciprocal)

struct Abs {
  static constexpr FormulaInfo info = {"abs", "Absolute value. The gradient at 0 is 0."};
  template <class T>
  static T fwd(T x, const float*) {
    return vabs(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return select(x > T(0.0f), dy, select(x < T(0.0f), -dy, T(0.0f)));
  }
};
DNL_UNARY(Abs)

// ---- exponential family -------------------------------------------------------------------------------------------
struct Exp {
  static constexpr FormulaInfo info = {"exp", "Exponential, e ** x.", {}, false, kReadsY};
  template <class T>
  static T fwd(T x, const float*) {
    return vexp(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return times(dy, y);
  }
};
DNL_UNARY(Exp)

struct Expm1 {
  static constexpr FormulaInfo info = {"expm1", "e ** x - 1, accurate for small x, too."};
  template <class T>
  static T fwd(T x, const float*) {
    return vexpm1(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return times(dy, y + T(1.0f));
  }
};
DNL_UNARY(Expm1)

struct Log {
  static constexpr FormulaInfo info = {"log", "Natural logarithm; -inf at 0, NaN for negative x."};
  template <class T>
  static T fwd(T x, const float*) {
    return vlog(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(1.0f) / x);
  }
};
DNL_UNARY(Log)

struct Log1p {
  static constexpr FormulaInfo info = {"log1p", "log(1 + x), accurate for small x, too."};
  template <class T>
  static T fwd(T x, const float*) {
    return vlog1p(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(1.0f) / (T(1.0f) + x));
  }
};
DNL_UNARY(Log1p)

struct Logistic {
  static constexpr FormulaInfo info = {"logistic", "Logistic sigmoid, 1 / (1 + e ** -x).", {}, false, kReadsY};
  template <class T>
  static T fwd(T x, const float*) {
    return vsigmoid(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return dy * (y * (T(1.0f) - y));
  }
};
DNL_UNARY(Logistic)

struct LogSigmoid {
  static constexpr FormulaInfo info = {"log_sigmoid", "Logarithm of the logistic sigmoid, -log(1 + e ** -x)."};
  template <class T>
  static T fwd(T x, const float*) {
    return -vsoftplus(-x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * vsigmoid(-x);
  }
};
DNL_UNARY(LogSigmoid)

struct Softplus {
  static constexpr FormulaInfo info = {"softplus", "Softplus, log(1 + e ** x): a smooth rectifier."};
  template <class T>
  static T fwd(T x, const float*) {
    return vsoftplus(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * vsigmoid(x);
  }
};
DNL_UNARY(Softplus)

// ---- activations --------------------------------------------------------------------------------------------------
struct Tanh {
  static constexpr FormulaInfo info = {"tanh", "Hyperbolic tangent.", {}, false, kReadsY};
  template <class T>
  static T fwd(T x, const float*) {
    return vtanh(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return dy * (T(1.0f) - y * y);
  }
};
DNL_UNARY(Tanh)

struct Rectify {
  static constexpr FormulaInfo info = {"rectify", "Rectifier, max(0, x). The gradient at 0 is 0."};
  template <class T>
  static T fwd(T x, const float*) {
    return vmax(T(0.0f), x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return select(x > T(0.0f), dy, T(0.0f));
  }
};
DNL_UNARY(Rectify)

struct Elu {
  static constexpr FormulaInfo info = {
      "elu",
      "Exponential linear unit: x where x > 0, else alpha (e ** x - 1) (Clevert, Unterthiner, Hochreiter, "
      "2016).",
      {{"alpha", 1.0f}}};
  template <class T>
  static T fwd(T x, const float* a) {
    return select(x > T(0.0f), x, T(a[0]) * vexpm1(x));
  }
  template <class T>
  static T bwd(T x, T y, T dy, const float* a) {
    return select(x > T(0.0f), dy, dy * (y + T(a[0])));
  }
};
DNL_UNARY(Elu)

struct Selu {
  static constexpr FormulaInfo info = {
      "selu", "Scaled exponential linear unit: 1.0507 times elu(x, alpha=1.6733) (Klambauer et al., 2017)."};
  static constexpr double kScale = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;
  template <class T>
  static T fwd(T x, const float*) {
    return select(x > T(0.0f), T(kScale) * x, T(kScale * kAlpha) * vexpm1(x));
  }
  template <class T>
  static T bwd(T x, T y, T dy, const float*) {
    return dy * select(x > T(0.0f), T(kScale), y + T(kScale * kAlpha));
  }
};
DNL_UNARY(Selu)

struct Silu {
  static constexpr FormulaInfo info = {
      "silu", "Swish: x times the logistic sigmoid of beta x (Ramachandran, Zoph, Le, 2017).", {{"beta", 1.0f}}};
  template <class T>
  static T fwd(T x, const float* a) {
    const T s = vsigmoid(T(a[0]) * x);
    return select(s == T(0.0f), T(0.0f), x * s);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float* a) {
    const T z = T(a[0]) * x, s = vsigmoid(z), r = vsigmoid(-z);
    const T slope = select(r * s == T(0.0f), T(0.0f), z * (r * s));
    return dy * (s + slope);
  }
};
DNL_UNARY(Silu)

struct Gelu {
  static constexpr FormulaInfo info = {
      "gelu", "Gaussian error linear unit: x times the normal distribution function at x (Hendrycks, Gimpel, 2016)."};
  template <class T>
  static T cdf(T x) {
    return T(0.5f) + T(0.5f) * verf(x * T(0.70710678118654752));
  }
  template <class T>
  static T fwd(T x, const float*) {
    const T p = cdf(x);
    return select(p == T(0.0f), T(0.0f), x * p);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    const T t = vmin(T(30.0f), vmax(T(-30.0f), x));  // beyond, the density is 0
    return dy * (cdf(t) + t * T(0.39894228040143268) * vexp(T(-0.5f) * t * t));
  }
};
DNL_UNARY(Gelu)

struct Softsign {
  static constexpr FormulaInfo info = {"softsign", "Softsign, x / (1 + |x|)."};
  template <class T>
  static T fwd(T x, const float*) {
    return select(vabs(x) > T(1e30f), vcopysign(T(1.0f), x), x / (T(1.0f) + vabs(x)));
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    const T d = T(1.0f) + vabs(x);
    return dy / d / d;
  }
};
DNL_UNARY(Softsign)

// ---- trigonometric and hyperbolic ---------------------------------------------------------------------------------
#include "kernels/formulas_trig.h"

// ---- special functions and rounding -------------------------------------------------------------------------------
struct Erf {
  static constexpr FormulaInfo info = {
      "erf", "Error function: the integral of e ** (-t * t) from 0 to x, times 2 / sqrt(pi)."};
  template <class T>
  static T fwd(T x, const float*) {
    return verf(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * T(1.12837916709551257) * vexp(-(x * x));
  }
};
DNL_UNARY(Erf)

struct Lgamma {
  static constexpr FormulaInfo info = {"lgamma", "Logarithm of the absolute value of the Gamma function."};
  template <class T>
  static T fwd(T x, const float*) {
    return vlgamma(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, vdigamma(x));
  }
};
DNL_UNARY(Lgamma)

struct Round {
  static constexpr FormulaInfo info = {
      "round",
      "Nearest whole number, ties to even; gradient 0, or that of x when straight through.",
      {{"straight_through", 0.0f, true}}};
  template <class T>
  static T fwd(T x, const float*) {
    return vrint(x);
  }
  template <class T>
  static T bwd(T, T, T dy, const float* a) {
    return a[0] != 0.0f ? dy : T(0.0f);
  }
};
DNL_UNARY(Round)

struct Ceil {
  static constexpr FormulaInfo info = {"ceil",
                                       "Whole number at or above x; gradient 0, or that of x when straight through.",
                                       {{"straight_through", 0.0f, true}}};
  template <class T>
  static T fwd(T x, const float*) {
    return vceil(x);
  }
  template <class T>
  static T bwd(T, T, T dy, const float* a) {
    return a[0] != 0.0f ? dy : T(0.0f);
  }
};
DNL_UNARY(Ceil)

struct Floor {
  static constexpr FormulaInfo info = {"floor",
                                       "Whole number at or below x; gradient 0, or that of x when straight through.",
                                       {{"straight_through", 0.0f, true}}};
  template <class T>
  static T fwd(T x, const float*) {
    return vfloor(x);
  }
  template <class T>
  static T bwd(T, T, T dy, const float* a) {
    return a[0] != 0.0f ? dy : T(0.0f);
  }
};
DNL_UNARY(Floor)

// ---- gradient only ------------------------------------------------------------------------------------------------
struct FlipGradient {
  static constexpr FormulaInfo info = {
      "flip_gradient", "x itself; the gradient that flows back changes its sign (Ganin, Lempitsky, 2015)."};
  template <class T>
  static T fwd(T x, const float*) {
    return x;
  }
  template <class T>
  static T bwd(T, T, T dy, const float*) {
    return -dy;
  }
};
DNL_UNARY(FlipGradient)

struct ScaleGradient {
  static constexpr FormulaInfo info = {
      "scale_gradient", "x itself; the gradient that flows back is multiplied by lambd.", {{"lambd", 1.0f}}};
  template <class T>
  static T fwd(T x, const float*) {
    return x;
  }
  template <class T>
  static T bwd(T, T, T dy, const float* a) {
    return T(a[0]) * dy;
  }
};
DNL_UNARY(ScaleGradient)

#ifdef DNL_UNARY_END
DNL_UNARY_END
#endif
#include "kernels/formulas_binary.h"
