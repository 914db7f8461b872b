// The trigonometric and hyperbolic functions; formulas.h includes this file and tells the rules.

struct Sin {
  static constexpr FormulaInfo info = {"sin", "Sine of x in radians."};
  template <class T>
  static T fwd(T x, const float*) {
    return vsin(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy * vcos(x);
  }
};
DNL_UNARY(Sin)

struct Cos {
  static constexpr FormulaInfo info = {"cos", "Cosine of x in radians."};
  template <class T>
  static T fwd(T x, const float*) {
    return vcos(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return -dy * vsin(x);
  }
};
DNL_UNARY(Cos)

struct Tan {
  static constexpr FormulaInfo info = {"tan", "Tangent of x in radians."};
  template <class T>
  static T fwd(T x, const float*) {
    return vtan(x);
  }
  template <class T>
  static T bwd(T, T y, T dy, const float*) {
    return times(dy, T(1.0f) + y * y);
  }
};
DNL_UNARY(Tan)

struct Asin {
  static constexpr FormulaInfo info = {"asin", "Inverse sine; NaN outside [-1, 1]."};
  template <class T>
  static T fwd(T x, const float*) {
    return vasin(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(1.0f) / vsqrt((T(1.0f) - x) * (T(1.0f) + x)));
  }
};
DNL_UNARY(Asin)

struct Acos {
  static constexpr FormulaInfo info = {"acos", "Inverse cosine; NaN outside [-1, 1]."};
  template <class T>
  static T fwd(T x, const float*) {
    return vacos(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(-1.0f) / vsqrt((T(1.0f) - x) * (T(1.0f) + x)));
  }
};
DNL_UNARY(Acos)

struct Atan {
  static constexpr FormulaInfo info = {"atan", "Inverse tangent."};
  template <class T>
  static T fwd(T x, const float*) {
    return vatan(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy / (T(1.0f) + x * x);
  }
};
DNL_UNARY(Atan)

struct Sinh {
  static constexpr FormulaInfo info = {"sinh", "Hyperbolic sine."};
  template <class T>
  static T fwd(T x, const float*) {
    return vsinh(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, vcosh(x));
  }
};
DNL_UNARY(Sinh)

struct Cosh {
  static constexpr FormulaInfo info = {"cosh", "Hyperbolic cosine."};
  template <class T>
  static T fwd(T x, const float*) {
    return vcosh(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, vsinh(x));
  }
};
DNL_UNARY(Cosh)

struct Asinh {
  static constexpr FormulaInfo info = {"asinh", "Inverse hyperbolic sine."};
  template <class T>
  static T fwd(T x, const float*) {
    return vasinh(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return dy / vsqrt(x * x + T(1.0f));
  }
};
DNL_UNARY(Asinh)

struct Acosh {
  static constexpr FormulaInfo info = {"acosh", "Inverse hyperbolic cosine; NaN below 1."};
  template <class T>
  static T fwd(T x, const float*) {
    return vacosh(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(1.0f) / (vsqrt(x - T(1.0f)) * vsqrt(x + T(1.0f))));
  }
};
DNL_UNARY(Acosh)

struct Atanh {
  static constexpr FormulaInfo info = {"atanh", "Inverse hyperbolic tangent; NaN outside [-1, 1]."};
  template <class T>
  static T fwd(T x, const float*) {
    return vatanh(x);
  }
  template <class T>
  static T bwd(T x, T, T dy, const float*) {
    return times(dy, T(1.0f) / ((T(1.0f) - x) * (T(1.0f) + x)));
  }
};
DNL_UNARY(Atanh)
