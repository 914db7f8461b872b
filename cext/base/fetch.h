// Asking for memory that is read or written soon. A hint: nothing happens where the compiler has no word for it.
//
// Macros, not functions: the files of one instruction set may not call inline functions (kernels/isa_body.h).
// Includes: nothing.
#pragma once

#if defined(__GNUC__)
#define DNL_FETCH(p) __builtin_prefetch(p)
#define DNL_FETCH_TO_WRITE(p) __builtin_prefetch(p, 1)
#else
#define DNL_FETCH(p) static_cast<void>(p)
#define DNL_FETCH_TO_WRITE(p) static_cast<void>(p)
#endif
