// Numbers of DyNet's text files: 16 characters each, "+d.dddddddde+dd " (printf's %+.8e and a blank).
//
// Only that form is read here, fast; any other spelling is the caller's to parse. Written numbers are finite. Nine
// digits name a float uniquely, and the arithmetic below errs by a few parts in 10^16, far less than the distance to
// the next float: the float that was written comes back. Includes: standard library only.
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace dnl {

constexpr std::size_t kDecimalWidth = 16;

// 10^k for k = -64..64: exact for 0..22, elsewhere right to a few units in the last place.
inline double power_of_ten(int k) {
  static const double* table = [] {
    static double t[129];
    double up = 1;
    for (int i = 0; i <= 22; ++i, up *= 10) t[64 + i] = up;  // exact
    for (int i = 23; i <= 64; ++i) t[64 + i] = static_cast<double>(static_cast<long double>(t[64 + i - 22]) * 1e22L);
    for (int i = 1; i <= 64; ++i) t[64 - i] = 1.0 / t[64 + i];
    return t;
  }();
  return table[64 + k];
}

// Reads n numbers; false at the first that is written in another way.
inline bool read_decimals(const char* s, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i, s += kDecimalWidth) {
    const bool negative = s[0] == '-', small = s[12] == '-';
    if ((!negative && s[0] != '+') || s[2] != '.' || s[11] != 'e' || (!small && s[12] != '+') || s[15] != ' ')
      return false;
    unsigned bad = 0;
    auto digit = [&](int at) {
      const unsigned d = static_cast<unsigned char>(s[at]) - 48u;
      bad |= d > 9u;
      return d;
    };
    unsigned m = digit(1);
    for (int j = 3; j <= 10; ++j) m = m * 10 + digit(j);
    const unsigned e = digit(13) * 10 + digit(14);
    if (bad || e > 55) return false;
    const int shift = (small ? -static_cast<int>(e) : static_cast<int>(e)) - 8;
    double v = m;
    v = shift < 0 && shift >= -22 ? v / power_of_ten(-shift) : v * power_of_ten(shift);
    out[i] = static_cast<float>(negative ? -v : v);
  }
  return true;
}

// Writes n finite numbers, kDecimalWidth characters each, and no zero at the end.
inline void write_decimals(const float* in, std::size_t n, char* out) {
  for (std::size_t i = 0; i < n; ++i, out += kDecimalWidth) {
    out[0] = std::signbit(in[i]) ? '-' : '+';
    const double size = std::fabs(static_cast<double>(in[i]));
#if defined(__cpp_lib_to_chars)
    std::to_chars(out + 1, out + kDecimalWidth - 1, size, std::chars_format::scientific, 8);
    out[kDecimalWidth - 1] = ' ';
#else
    char text[kDecimalWidth + 8];
    std::snprintf(text, sizeof text, "%.8e ", size);
    for (std::size_t k = 1; k < kDecimalWidth; ++k) out[k] = text[k - 1];
    out[2] = '.';  // whatever the locale has
#endif
  }
}

}  // namespace dnl
