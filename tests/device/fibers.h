// The threads of a block on one thread of the host: each has a stack of its own, and a barrier goes on to the next.
//
// A barrier that some threads of a block reach and others do not is an error that ends the program, and so is a stack
// that overflows. What a block shares is NaN when it begins; with the address sanitizer it is not, but has an edge. Who
// may include: dialect.h on the host, standin.cc. Includes: standard library only.
#pragma once
#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define DNL_FIBERS_SHARED static
#else
#define DNL_FIBERS_SHARED static thread_local  // which makes one piece of all of it; this library has no others
#endif

namespace fibers {

#if !defined(__SANITIZE_ADDRESS__)
// The piece of memory with what blocks share.
struct Shared {
  char* at = nullptr;
  std::size_t bytes = 0;
};
inline int find_shared(dl_phdr_info* library, std::size_t, void* to) {
  static const int here = 0;
  bool ours = false;
  std::size_t bytes = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    const auto begin = library->dlpi_addr + part.p_vaddr;
    const auto at = reinterpret_cast<std::uintptr_t>(&here);
    ours = ours || (part.p_type == PT_LOAD && begin <= at && at < begin + part.p_memsz);
    if (part.p_type == PT_TLS) bytes = part.p_memsz;
  }
  if (ours) *static_cast<Shared*>(to) = {static_cast<char*>(library->dlpi_tls_data), bytes};
  return ours;
}
inline void forget_shared() {
  Shared all;
  dl_iterate_phdr(find_shared, &all);
  if (all.at) std::memset(all.at, 0xff, all.bytes);
}
#else
inline void forget_shared() {}
#endif

inline int thread, block, blocks, record;  // what the kernel asks for

constexpr int kMost = 1024;
constexpr std::size_t kStack = 64 * 1024;

#if defined(__x86_64__)
struct Context {
  void* sp = nullptr;
};
// Keeps what a call must keep, on the old stack, and goes on on the new one.
extern "C" void dnl_fiber_switch(void** from, void* to);
asm(R"(
.text
.weak dnl_fiber_switch
.type dnl_fiber_switch, @function
dnl_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dnl_fiber_switch, . - dnl_fiber_switch
)");
inline void change(Context& from, Context& to) { dnl_fiber_switch(&from.sp, to.sp); }
inline void prepare(Context& c, char* stack_end, void (*entry)()) {
  void** sp = reinterpret_cast<void**>(stack_end);
  *--sp = nullptr;  // where entry would return to: keeps its stack aligned as after a call
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  c.sp = sp;
}
#else
using Context = ucontext_t;
inline void change(Context& from, Context& to) { swapcontext(&from, &to); }
inline void prepare(Context& c, char* stack_end, void (*entry)()) {
  getcontext(&c);
  c.uc_stack.ss_sp = stack_end - kStack;
  c.uc_stack.ss_size = kStack;
  c.uc_link = nullptr;
  makecontext(&c, entry, 0);
}
#endif

inline Context host, of_thread[kMost];
inline bool waits[kMost], done[kMost];
inline void (*kernel)(const void*);
inline const void* argument;

inline void barrier() {
  waits[thread] = true;
  change(of_thread[thread], host);
}
inline void run_thread() {
  kernel(argument);
  done[thread] = true;
  change(of_thread[thread], host);
  std::abort();
}
inline char* stacks() {
  static char* const at = [] {
    void* p = mmap(nullptr, kMost * 2 * kStack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    for (int t = 0; t < kMost; ++t)  // every other stretch is never there
      mprotect(static_cast<char*>(p) + (2 * t + 1) * kStack, kStack, PROT_READ | PROT_WRITE);
    return static_cast<char*>(p);
  }();
  return at;
}

// One block of a kernel whose threads wait for one another.
inline void run_block(int threads) {
  forget_shared();
  for (int t = 0; t < threads; ++t) {
    done[t] = false;
    prepare(of_thread[t], stacks() + (2 * t + 2) * kStack, run_thread);
  }
  for (;;) {
    int waiting = 0, ended = 0;
    for (thread = 0; thread < threads; ++thread) {
      waits[thread] = false;
      change(host, of_thread[thread]);
      (waits[thread] ? waiting : ended) += 1;
    }
    if (waiting == 0) return;
    if (ended == 0) continue;
    std::fprintf(stderr, "device: %d threads of a block wait for %d that have ended\n", waiting, ended);
    std::abort();
  }
}

// All blocks of a launch.
inline void launch(void (*f)(const void*), const void* records, int grid, int count, int threads, bool with_barriers) {
  kernel = f;
  argument = records;
  blocks = grid;
  for (record = 0; record < count; ++record)
    for (block = 0; block < grid; ++block) {
      if (with_barriers) {
        run_block(threads);
        continue;
      }
      for (thread = 0; thread < threads; ++thread) f(records);
    }
}

}  // namespace fibers
