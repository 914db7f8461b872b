// Elementwise formulas: values against the C library in double, over all floats and at special values; gradients
// against finite differences in double, where the same formula text runs on doubles. A formula without a reference here
// is checked by the op table alone (tests/ops), at the accuracy that its row states.
#include <map>

#include "check.h"
#include "kernels/formula_info.h"

namespace check {
extern bool print_accuracy;
namespace {

// ---- references ---------------------------------------------------------------------------------------------------

using Fn1 = double (*)(double, const float*);
using Fn2 = double (*)(double, double, const float*);
double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
double digamma(double x) {
  if (x < 6) return digamma(x + 1) - 1 / x;
  const double w = 1 / (x * x);
  return std::log(x) - 0.5 / x - w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w / 240)));
}
double keep_nan(double x, double y) { return std::isnan(x) ? x : y; }

struct Reference1 {
  Fn1 f;
  double ulps;      // largest error allowed
  double absolute;  // or this, where the value is near 0
  float lo, hi;     // samples beside those over all floats
};
const std::map<std::string, Reference1> kUnary = {
    {"negate", {[](double x, const float*) { return -x; }, 0, 0, -9, 9}},
    {"add_const", {[](double x, const float* a) { return x + a[0]; }, 1, 0, -9, 9}},
    {"const_minus", {[](double x, const float* a) { return a[0] - x; }, 1, 0, -9, 9}},
    {"scale", {[](double x, const float* a) { return a[0] * x; }, 1, 0, -9, 9}},
    {"const_div", {[](double x, const float* a) { return a[0] / x; }, 1, 0, -9, 9}},
    {"pow_const", {[](double x, const float* a) { return std::pow(x, double(a[0])); }, 2, 0, -9, 9}},
    {"const_pow", {[](double x, const float* a) { return std::pow(double(a[0]), x); }, 2, 0, -9, 9}},
    {"square", {[](double x, const float*) { return x * x; }, 1, 0, -9, 9}},
    {"cube", {[](double x, const float*) { return x * x * x; }, 2, 3e-45, -9, 9}},
    {"sqrt", {[](double x, const float*) { return std::sqrt(x); }, 1, 0, -9, 9}},
    {"rsqrt", {[](double x, const float*) { return 1 / std::sqrt(x); }, 2, 0, -9, 9}},
    {"reciprocal", {[](double x, const float*) { return 1 / x; }, 1, 0, -9, 9}},
    {"abs", {[](double x, const float*) { return std::fabs(x); }, 0, 0, -9, 9}},
    {"exp", {[](double x, const float*) { return std::exp(x); }, 1.5, 1.5e-45, -104, 89}},
    {"expm1", {[](double x, const float*) { return std::expm1(x); }, 2.5, 0, -20, 89}},
    {"log", {[](double x, const float*) { return std::log(x); }, 1.5, 0, 0, 9}},
    {"log1p", {[](double x, const float*) { return std::log1p(x); }, 3.5, 0, -1, 9}},
    {"logistic", {[](double x, const float*) { return sigmoid(x); }, 3, 1.5e-45, -104, 89}},
    {"log_sigmoid", {[](double x, const float*) { return keep_nan(x, -softplus(-x)); }, 4, 1.5e-45, -104, 89}},
    {"softplus", {[](double x, const float*) { return keep_nan(x, softplus(x)); }, 4, 1.5e-45, -104, 89}},
    {"tanh", {[](double x, const float*) { return std::tanh(x); }, 3, 0, -10, 10}},
    {"rectify", {[](double x, const float*) { return keep_nan(x, std::fmax(x, 0)); }, 0, 0, -9, 9}},
    {"elu", {[](double x, const float* a) { return x > 0 ? x : a[0] * std::expm1(x); }, 3, 0, -20, 9}},
    {"selu",
     {[](double x, const float*) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }, 4,
      0, -20, 9}},
    {"silu", {[](double x, const float* a) { return x == -kInf ? 0 : x * sigmoid(a[0] * x); }, 300, 1e-40, -70, 9}},
    {"gelu",
     {[](double x, const float*) { return x == -kInf ? 0 : x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, 4, 4e-7, -9,
      9}},
    {"softsign",
     {[](double x, const float*) { return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x)); }, 2, 0, -9,
      9}},
    {"sin", {[](double x, const float*) { return std::sin(x); }, 2, 1.2e-7, -9000, 9000}},
    {"cos", {[](double x, const float*) { return std::cos(x); }, 2, 1.2e-7, -9000, 9000}},
    {"tan", {[](double x, const float*) { return std::tan(x); }, 2, 0, -9, 9}},
    {"asin", {[](double x, const float*) { return std::asin(x); }, 2, 0, -1, 1}},
    {"acos", {[](double x, const float*) { return std::acos(x); }, 2, 0, -1, 1}},
    {"atan", {[](double x, const float*) { return std::atan(x); }, 2, 0, -9, 9}},
    {"sinh", {[](double x, const float*) { return std::sinh(x); }, 3, 0, -9, 9}},
    {"cosh", {[](double x, const float*) { return std::cosh(x); }, 2, 0, -9, 9}},
    {"asinh", {[](double x, const float*) { return std::asinh(x); }, 3, 0, -9, 9}},
    {"acosh", {[](double x, const float*) { return std::acosh(x); }, 3, 0, 1, 9}},
    {"atanh", {[](double x, const float*) { return std::atanh(x); }, 3, 0, -1, 1}},
    {"erf", {[](double x, const float*) { return std::erf(x); }, 2, 0, -5, 5}},
    {"lgamma", {[](double x, const float*) { return std::lgamma(x); }, 2, 2e-7, -5, 20}},
    {"round", {[](double x, const float*) { return std::nearbyint(x); }, 0, 0, -9, 9}},
    {"ceil", {[](double x, const float*) { return std::ceil(x); }, 0, 0, -9, 9}},
    {"floor", {[](double x, const float*) { return std::floor(x); }, 0, 0, -9, 9}},
    {"flip_gradient", {[](double x, const float*) { return x; }, 0, 0, -9, 9}},
    {"scale_gradient", {[](double x, const float*) { return x; }, 0, 0, -9, 9}},
};

struct Reference2 {
  Fn2 f;
  double relative, absolute;
  float u_lo, u_hi, v_lo, v_hi;
};
double clamped_log(double x) { return std::log(std::fmax(x, 1.17549435e-38)); }
const std::map<std::string, Reference2> kBinary = {
    {"add", {[](double u, double v, const float*) { return u + v; }, 1e-7, 0, -3, 3, -3, 3}},
    {"sub", {[](double u, double v, const float*) { return u - v; }, 1e-7, 0, -3, 3, -3, 3}},
    {"cmult", {[](double u, double v, const float*) { return u * v; }, 1e-7, 0, -3, 3, -3, 3}},
    {"cdiv", {[](double u, double v, const float*) { return u / v; }, 1e-7, 0, -3, 3, -3, 3}},
    {"bmin", {[](double u, double v, const float*) { return std::isnan(u) || u < v ? u : v; }, 0, 0, -3, 3, -3, 3}},
    {"bmax", {[](double u, double v, const float*) { return std::isnan(u) || u > v ? u : v; }, 0, 0, -3, 3, -3, 3}},
    {"pow", {[](double u, double v, const float*) { return std::pow(u, v); }, 3e-7, 0, 0.1f, 3, -3, 3}},
    {"squared_difference", {[](double u, double v, const float*) { return (u - v) * (u - v); }, 3e-7, 0, -3, 3, -3, 3}},
    {"abs_difference", {[](double u, double v, const float*) { return std::fabs(u - v); }, 3e-7, 0, -3, 3, -3, 3}},
    {"huber",
     {[](double u, double v, const float* a) {
        const double d = std::fabs(u - v), c = a[0];
        return d <= c ? d * d / 2 : c * d - c * c / 2;
      },
      5e-7, 1e-7, -3, 3, -3, 3}},
    {"binary_log_loss_terms",
     {[](double u, double v, const float*) { return -(v * clamped_log(u) + (1 - v) * clamped_log(1 - u)); }, 1e-6, 1e-6,
      0.01f, 0.99f, 0.01f, 0.99f}},
    {"pairwise_rank",
     {[](double u, double v, const float* a) { return keep_nan(u + v, std::fmax(0, a[0] - u + v)); }, 1e-6, 1e-6, -3, 3,
      -3, 3}},
    {"poisson",
     {[](double u, double v, const float*) { return std::exp(u) - v * u + std::lgamma(v + 1); }, 1e-6, 1e-5, -3, 3, 0,
      9}},
};

// ---- the formulas on doubles ---------------------------------------------------------------------------------------

namespace in_double {
struct D {
  double v;
  D() = default;
  D(double x) : v(x) {}  // NOLINT: numbers are meant to convert
};
D operator+(D a, D b) { return a.v + b.v; }
D operator-(D a, D b) { return a.v - b.v; }
D operator*(D a, D b) { return a.v * b.v; }
D operator/(D a, D b) { return a.v / b.v; }
D operator-(D a) { return -a.v; }
bool operator<(D a, D b) { return a.v < b.v; }
bool operator<=(D a, D b) { return a.v <= b.v; }
bool operator>(D a, D b) { return a.v > b.v; }
bool operator>=(D a, D b) { return a.v >= b.v; }
bool operator==(D a, D b) { return a.v == b.v; }
D select(bool m, D a, D b) { return m ? a : b; }
D vmin(D a, D b) { return a.v < b.v ? a : b; }
D vmax(D a, D b) { return a.v > b.v ? a : b; }
D vabs(D x) { return std::fabs(x.v); }
D vsqrt(D x) { return std::sqrt(x.v); }
D vcopysign(D x, D s) { return std::copysign(x.v, s.v); }
D vrint(D x) { return std::nearbyint(x.v); }
D vfloor(D x) { return std::floor(x.v); }
D vceil(D x) { return std::ceil(x.v); }
D vexp(D x) { return std::exp(x.v); }
D vexpm1(D x) { return std::expm1(x.v); }
D vlog(D x) { return std::log(x.v); }
D vlog1p(D x) { return std::log1p(x.v); }
D vtanh(D x) { return std::tanh(x.v); }
D vsigmoid(D x) { return sigmoid(x.v); }
D vsoftplus(D x) { return softplus(x.v); }
D verf(D x) { return std::erf(x.v); }
D vsin(D x) { return std::sin(x.v); }
D vcos(D x) { return std::cos(x.v); }
D vtan(D x) { return std::tan(x.v); }
D vasin(D x) { return std::asin(x.v); }
D vacos(D x) { return std::acos(x.v); }
D vatan(D x) { return std::atan(x.v); }
D vsinh(D x) { return std::sinh(x.v); }
D vcosh(D x) { return std::cosh(x.v); }
D vasinh(D x) { return std::asinh(x.v); }
D vacosh(D x) { return std::acosh(x.v); }
D vatanh(D x) { return std::atanh(x.v); }
D vpow(D x, D y) { return std::pow(x.v, y.v); }
D vlgamma(D x) { return std::lgamma(x.v); }
D vdigamma(D x) { return digamma(x.v); }

struct Unary {
  std::string name;
  dnl::FormulaInfo info;
  D (*fwd)(D, const float*);
  D (*bwd)(D, D, D, const float*);
};
struct Binary {
  std::string name;
  dnl::FormulaInfo info;
  D (*fwd)(D, D, const float*);
  D (*bwd_u)(D, D, D, D, const float*);
  D (*bwd_v)(D, D, D, D, const float*);
};
std::vector<Unary> unary;
std::vector<Binary> binary;
template <class T>
struct Enter {
  explicit Enter(T t, std::vector<T>& list) { list.push_back(t); }
};

using dnl::FormulaInfo;
using dnl::kInternal;
using dnl::kReadsAll;
using dnl::kReadsNothing;
using dnl::kReadsV;
using dnl::kReadsX;
using dnl::kReadsY;
#define DNL_UNARY(S) const Enter<Unary> enter_##S({S::info.name, S::info, S::fwd<D>, S::bwd<D>}, unary);
#define DNL_BINARY(S) \
  const Enter<Binary> enter_##S({S::info.name, S::info, S::fwd<D>, S::bwd_u<D>, S::bwd_v<D>}, binary);
#include "kernels/formulas.h"
#undef DNL_UNARY
#undef DNL_BINARY
}  // namespace in_double

std::vector<float> attribute_values(const dnl::FormulaInfo& info) {
  const std::string name = info.name;
  if (name == "round" || name == "ceil" || name == "floor") return {0};
  if (info.n_attr() == 0) return {0};
  if (name == "pow_const") return {0, 1, 2, 3, 0.5f, -1, 2.5f};
  if (name == "const_pow") return {2, 0.5f};
  return {info.attr[0].value, 1.7f, 0.3f};
}
bool gradient_is_not_the_slope(const std::string& name) { return name == "flip_gradient" || name == "scale_gradient"; }

const float kSpecial[] = {0.0f,    -0.0f,   1.0f,   -1.0f,  kInf, -kInf, kNan,    1e-38f, -1e-38f, 1e-42f,
                          -1e-42f, 3e38f,   -3e38f, 1e-20f, 0.5f, -0.5f, 2.5f,    -2.5f,  88.0f,   89.0f,
                          -88.0f,  -104.0f, 1e30f,  -1e30f, 1e5f, -1e5f, 8192.5f, 1.5e7f, -3.0f,   8388609.0f};

}  // namespace

// Gradients get NaN for what they say that they do not read.
void formula_gradients() {
  Numbers numbers;
  auto given = [](const dnl::FormulaInfo& info, unsigned what, double v) { return info.reads & what ? v : double(kNan); };
  for (const auto& f : in_double::unary) {
    const auto ref = kUnary.find(f.name);
    if (ref == kUnary.end() || gradient_is_not_the_slope(f.name)) continue;
    for (float attr : attribute_values(f.info))
      for (int trial = 0; trial < 60; ++trial) {
        float lo = std::fmax(ref->second.lo, -8.0f), hi = std::fmin(ref->second.hi, 8.0f);
        if (f.name == "lgamma" || std::isnan(f.fwd(-1.0, &attr).v)) lo = std::fmax(lo, 0.0f);
        const double x = numbers.uniform(lo + 0.02f, hi - 0.02f), dy = numbers.uniform(-2, 2), e = 1e-5;
        if (std::fabs(x) < 1e-3 || std::fabs(x - std::nearbyint(x)) < 1e-3) continue;  // kinks
        const double want = dy * (f.fwd(x + e, &attr).v - f.fwd(x - e, &attr).v) / (2 * e);
        const double y = f.fwd(x, &attr).v;
        const double gx = given(f.info, dnl::kReadsX, x), gy = given(f.info, dnl::kReadsY, y);
        expect_near(f.bwd(gx, gy, dy, &attr).v, want, 2e-5, 1e-6, f.name + " gradient");
      }
  }
  for (const auto& f : in_double::binary) {
    const auto found = kBinary.find(f.name);
    if (found == kBinary.end()) continue;
    const Reference2& r = found->second;
    for (float attr : attribute_values(f.info))
      for (int trial = 0; trial < 60; ++trial) {
        const double u = numbers.uniform(r.u_lo, r.u_hi), v = numbers.uniform(r.v_lo, r.v_hi);
        const double dy = numbers.uniform(-2, 2), e = 1e-5, y = f.fwd(u, v, &attr).v;
        if (std::fabs(u - v) < 1e-3 || std::fabs(v) < 1e-2) continue;
        if (f.name == "pairwise_rank" && std::fabs(attr - u + v) < 1e-3) continue;
        const double want_u = dy * (f.fwd(u + e, v, &attr).v - f.fwd(u - e, v, &attr).v) / (2 * e);
        const double want_v = dy * (f.fwd(u, v + e, &attr).v - f.fwd(u, v - e, &attr).v) / (2 * e);
        const double gu = given(f.info, dnl::kReadsX, u), gv = given(f.info, dnl::kReadsV, v);
        const double gy = given(f.info, dnl::kReadsY, y);
        expect_near(f.bwd_u(gu, gv, gy, dy, &attr).v, want_u, 2e-5, 1e-6, f.name + " gradient of the first");
        expect_near(f.bwd_v(gu, gv, gy, dy, &attr).v, want_v, 2e-5, 1e-6, f.name + " gradient of the second");
      }
  }
}

namespace {

double ulp(double want) {
  int e;
  std::frexp(want, &e);
  return std::ldexp(1.0, std::max(e - 24, -149));
}

// Values at samples, special numbers and bit patterns drawn from all floats.
void unary_values(const Kernels& k, const dnl::UnaryKernel& kernel, const Reference1& ref,
                  const dnl::FormulaInfo& info) {
  Numbers numbers;
  std::vector<float> x(std::begin(kSpecial), std::end(kSpecial));
  for (int i = 0; i < 20000; ++i) x.push_back(numbers.uniform(ref.lo, ref.hi));
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(numbers.engine());
    float v;
    std::memcpy(&v, &bits, 4);
    x.push_back(std::isnan(v) ? kNan : v);  // no signalling NaNs: C functions may treat them differently
  }
  std::vector<float> y(x.size());
  double worst = 0;
  float worst_at = 0;
  for (float attr : attribute_values(info)) {
    kernel.fwd(x.size(), x.data(), y.data(), info.n_attr() ? &attr : nullptr);
    for (std::size_t i = 0; i < x.size(); ++i) {
      double want = ref.f(x[i], &attr);
      if (std::fabs(want) >= 3.4028235677973366e38) want = std::copysign(kInf, want);  // what rounding to float gives
      const std::string where = std::string(k.isa) + " " + kernel.name + "(" + std::to_string(x[i]) + ")";
      if (std::isnan(want) || std::isinf(want) || std::isinf(y[i]) || std::isnan(y[i])) {
        // The last finite values may round up to infinity.
        const bool edge = std::isinf(y[i]) && std::fabs(want) > 3.40281e38;
        if (!edge) expect_near(y[i], want, 0, 0, where);
        continue;
      }
      const double error = std::fabs(y[i] - want);
      if (error > ref.absolute && error / ulp(want) > worst) worst = error / ulp(want), worst_at = x[i];
    }
  }
  expect(worst <= ref.ulps + 0.5, std::string(k.isa) + " " + kernel.name + ": " + std::to_string(worst) +
                                      " units in the last place at " + std::to_string(worst_at));
  if (print_accuracy) std::printf("%-9s %-16s %8.2f ulp at %g\n", k.isa, kernel.name, worst, worst_at);
}

void unary_sizes(const Kernels& k, const dnl::UnaryKernel& kernel, const Reference1& ref, const in_double::Unary& f) {
  Numbers numbers;
  const float attr = f.info.attr[0].name ? f.info.attr[0].value : 0;
  for (idx n = 0; n <= 70; ++n) {
    const std::string where = std::string(k.isa) + " " + kernel.name + " n=" + std::to_string(n);
    Buffer x(n), y(n), dy(n), dx(n), single(1);
    float lo = std::fmax(ref.lo, -3.0f), hi = std::fmin(ref.hi, 3.0f);
    if (f.name == "lgamma" || std::isnan(f.fwd(-0.7, &attr).v)) lo = std::fmax(lo, 0.1f);
    numbers.fill(x, lo, hi);
    numbers.fill(dy);
    kernel.fwd(n, x.p(), y.p(), nullptr);
    y.guarded(where);
    for (int acc = 0; acc < 2; ++acc) {
      dx.set(0.5f);
      kernel.bwd(n, x.p(), y.p(), dy.p(), dx.p(), nullptr, acc);
      dx.guarded(where);
      for (idx i = 0; i < n; ++i) {
        const double want = f.bwd(x[i], f.fwd(x[i], &attr), dy[i], &attr).v + (acc ? 0.5 : 0);
        // The slope may lose digits as 1 - y * y does.
        expect_near(dx[i], want, 1e-5, 4e-6, where + (acc ? " adding gradient" : " gradient"));
      }
    }
    for (idx i = 0; i < n; ++i) {  // alone or among others, in place or not: the same bits
      kernel.fwd(1, x.p() + i, single.p(), nullptr);
      expect(single[0] == y[i], where + ": a number alone differs");
    }
    kernel.fwd(n, x.p(), x.p(), nullptr);
    for (idx i = 0; i < n; ++i) expect(x[i] == y[i], where + ": in place differs");
  }
  // Gradients are never NaN for finite arguments in the domain when nothing comes in, and at kinks.
  for (float v : kSpecial) {
    if (std::isnan(v) || std::isinf(v) || std::isnan(f.fwd(v, &attr).v)) continue;
    float y, dx, zero = 0;
    kernel.fwd(1, &v, &y, nullptr);
    kernel.bwd(1, &v, &y, &zero, &dx, nullptr, false);
    expect(dx == 0 || std::isinf(y), std::string(k.isa) + " " + kernel.name + ": gradient of nothing at " +
                                         std::to_string(v) + " is " + std::to_string(dx));
  }
}

void binary_all(const Kernels& k, const dnl::BinaryKernel& kernel, const Reference2& ref, const in_double::Binary& f) {
  Numbers numbers;
  const float attr = f.info.attr[0].name ? f.info.attr[0].value : 0;
  for (idx n = 0; n <= 70; ++n)
    for (int strides = 0; strides < 4; ++strides) {
      const idx su = strides & 1, sv = strides >> 1;
      const std::string where =
          std::string(k.isa) + " " + kernel.name + " n=" + std::to_string(n) + " strides " + std::to_string(strides);
      Buffer u(su ? n : 1), v(sv ? n : 1), y(n), dy(n), du(su ? n : 1), dv(sv ? n : 1);
      numbers.fill(u, ref.u_lo, ref.u_hi);
      numbers.fill(v, ref.v_lo, ref.v_hi);
      numbers.fill(dy);
      kernel.fwd(n, u.p(), su, v.p(), sv, y.p(), nullptr);
      y.guarded(where);
      for (idx i = 0; i < n; ++i)
        expect_near(y[i], ref.f(u[i * su], v[i * sv], &attr), ref.relative, ref.absolute, where);
      for (int acc = 0; acc < 4; ++acc) {
        du.set(0.5f);
        dv.set(0.25f);
        kernel.bwd(n, u.p(), su, v.p(), sv, y.p(), dy.p(), du.p(), acc & 1, dv.p(), acc >> 1, nullptr);
        du.guarded(where);
        dv.guarded(where);
        std::vector<double> want_u(du.n, acc & 1 ? 0.5 : 0), want_v(dv.n, acc >> 1 ? 0.25 : 0);
        for (idx i = 0; i < n; ++i) {
          const double a = u[i * su], b = v[i * sv], c = f.fwd(a, b, &attr).v;
          want_u[i * su] += f.bwd_u(a, b, c, dy[i], &attr).v;
          want_v[i * sv] += f.bwd_v(a, b, c, dy[i], &attr).v;
        }
        const double room = f.name == "pow" ? 1e-3 : f.name == "cdiv" ? 1e-2 : 1e-4;
        expect_all(du.p(), want_u, 2e-5, room, where + " du");
        expect_all(dv.p(), want_v, 2e-5, room, where + " dv");
      }
      const float before = dv.n ? dv[0] : 0;
      kernel.bwd(n, u.p(), su, v.p(), sv, y.p(), dy.p(), du.p(), false, nullptr, false, nullptr);
      expect(dv.n == 0 || dv[0] == before, where + ": a null gradient was computed");
      kernel.bwd(n, u.p(), su, v.p(), sv, y.p(), dy.p(), nullptr, false, nullptr, false, nullptr);
    }
}

}  // namespace

void formulas(const Kernels& k) {
  expect(static_cast<std::size_t>(k.n_unary) == in_double::unary.size(), "number of unary kernels");
  expect(static_cast<std::size_t>(k.n_binary) == in_double::binary.size(), "number of binary kernels");
  for (int i = 0; i < k.n_unary; ++i) {
    const auto& f = in_double::unary[i];
    expect(f.name == k.unary[i].name, "unary ids: " + f.name);
    if (!kUnary.count(f.name)) continue;
    unary_values(k, k.unary[i], kUnary.at(f.name), f.info);
    unary_sizes(k, k.unary[i], kUnary.at(f.name), f);
  }
  for (int i = 0; i < k.n_binary; ++i) {
    const auto& f = in_double::binary[i];
    expect(f.name == k.binary[i].name, "binary ids: " + f.name);
    if (kBinary.count(f.name)) binary_all(k, k.binary[i], kBinary.at(f.name), f);
  }
  // Clamped logs: a sure mistake has a finite loss, a right answer none; gradients are finite.
  for (int i = 0; i < k.n_binary; ++i) {
    if (std::string(k.binary[i].name) != "binary_log_loss_terms") continue;
    const float u[4] = {0, 1, 0, 1}, v[4] = {0, 1, 1, 0}, one[4] = {1, 1, 1, 1};
    float y[4], du[4], dv[4];
    k.binary[i].fwd(4, u, 1, v, 1, y, nullptr);
    k.binary[i].bwd(4, u, 1, v, 1, y, one, du, false, dv, false, nullptr);
    expect(y[0] == 0 && y[1] == 0 && std::fabs(y[2] - 87.3365f) < 1e-3f && std::fabs(y[3] - 87.3365f) < 1e-3f,
           "binary_log_loss at 0 and 1");
    for (int j = 0; j < 4; ++j)
      expect(std::isfinite(du[j]) && std::isfinite(dv[j]), "binary_log_loss gradients at 0 and 1");
  }
}

}  // namespace check
