// The logarithm of the gamma function and its derivative, for one number, in double and rounded once.
//
// Included inside a namespace that has kInf and kNan: by mathfn.h and by the device's functions.h, never elsewhere.
// Includes: nothing.

// log |Gamma(x)| for one number: the C library's lgammaf writes a global, so threads could disturb each other.
// Reflection for x < 1/2, recurrence up to 8, then Stirling's series; in double, rounded once.
static inline float lgamma1(float x) {
  const double pi = 3.14159265358979323846;
  if (!(x == x)) return x;
  if (x == kInf || x == -kInf) return kInf;
  if (x <= 0 && floorf(x) == x) return kInf;
  if (x == 1 || x == 2) return 0;
  double z = x, add = 0;
  if (z < 0.5) {
    const double s = sin(pi * (z - floor(z + 0.5)));
    add = log(pi / (s < 0 ? -s : s));
    z = 1 - z;
  }
  double shift = 0, prod = 1;
  while (z < 8) {
    prod *= z;
    z += 1;
  }
  shift = log(prod);
  const double w = 1 / z, w2 = w * w;
  const double series = w * (1.0 / 12 - w2 * (1.0 / 360 - w2 * (1.0 / 1260 - w2 * (1.0 / 1680 - w2 / 1188))));
  const double lg = (z - 0.5) * log(z) - z + 0.91893853320467274178 + series - shift;
  return static_cast<float>(add != 0 ? add - lg : lg);
}
// The derivative of lgamma; NaN at the poles.
static inline float digamma1(float x) {
  const double pi = 3.14159265358979323846;
  if (!(x == x) || x == -kInf || (x <= 0 && floorf(x) == x)) return kNan;
  if (x == kInf) return x;
  double z = x, add = 0;
  if (z < 0.5) {
    const double a = pi * (z - floor(z + 0.5));
    add = -pi * cos(a) / sin(a);
    z = 1 - z;
  }
  while (z < 8) {
    add -= 1 / z;
    z += 1;
  }
  const double w2 = 1 / (z * z);
  const double series = w2 * (1.0 / 12 - w2 * (1.0 / 120 - w2 * (1.0 / 252 - w2 * (1.0 / 240 - w2 / 132))));
  return static_cast<float>(add + log(z) - 0.5 / z - series);
}
