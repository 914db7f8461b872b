// What the processor is and can do, as far as kernels and the choice of a BLAS depend on it.
//
// Asked of the processor itself: __builtin_cpu_supports answers no to everything with compilers whose runtime library
// does not fill in its tables (zig's, with which wheels are built). Who may include: dispatch.cc, blas.cc. Includes:
// cpuid.h.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define DNL_X86 1
#endif

namespace dnl {

struct Processor {
  bool intel = false;   // who made it
  bool avx2 = false;    // AVX2, FMA, F16C, BMI1 and BMI2, and the system keeps their registers
  bool avx512 = false;  // besides these AVX-512 F, VL, DQ, BW
};

#ifdef DNL_X86
inline Processor processor() {
  Processor p;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return p;
  p.intel = b == 0x756e6547u && d == 0x49656e69u && c == 0x6c65746eu;  // "Genu" "ineI" "ntel"
  if (!__get_cpuid(1, &a, &b, &c, &d)) return p;
  const auto has = [](unsigned word, int bit) { return (word >> bit & 1u) != 0; };
  if (!has(c, 12) || !has(c, 27) || !has(c, 29)) return p;  // FMA, OSXSAVE, F16C
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return p;
  p.avx2 = (low & 0x06u) == 0x06u && has(b, 3) && has(b, 5) && has(b, 8);
  p.avx512 = p.avx2 && (low & 0xe6u) == 0xe6u && has(b, 16) && has(b, 17) && has(b, 30) && has(b, 31);
  return p;
}
#else
inline Processor processor() { return {}; }
#endif

}  // namespace dnl
