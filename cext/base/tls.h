// Variables of a thread that are read at every call. Includes: nothing.
#pragma once

// Found without a call where the C library keeps room for a few such words of libraries that are loaded late.
#if defined(__GLIBC__) && defined(__GNUC__)
#define DNL_QUICK_TLS __attribute__((tls_model("initial-exec")))
#else
#define DNL_QUICK_TLS
#endif
