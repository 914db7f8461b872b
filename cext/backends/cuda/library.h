// A library that is looked for at run time, and its functions. It stays open as long as the process lives.
// Who may include: backends/cuda. Includes: the system's headers for it.
#pragma once
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace dnl::cuda {

// Null where there is none.
inline void* open_library(const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<void*>(LoadLibraryA(name));
#else
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}
// Whether it has the function.
template <class F>
bool take_symbol(void* library, const char* name, F** to) {
#if defined(_WIN32)
  *to = reinterpret_cast<F*>(GetProcAddress(static_cast<HMODULE>(library), name));
#else
  *to = reinterpret_cast<F*>(dlsym(library, name));
#endif
  return *to != nullptr;
}

}  // namespace dnl::cuda
