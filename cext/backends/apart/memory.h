// Memory that only its backend can reach, for tests: addresses with nothing behind them, whose numbers lie elsewhere.
//
// Two ranges of addresses are taken, one as long as the other. What is handed out is of the first, which nobody may
// read or write; the numbers lie at the same place of the second, which only this file knows. So an address of this
// memory is never one of the host's, and who follows it, or goes past its end, is found out at once.
// Who may include: backends/apart/. Includes: base/.
#pragma once
#include <cstddef>

namespace dnl {

// Is there such memory on this system?
bool apart_memory_exists();
// Fresh memory is NaN everywhere.
void* apart_alloc(std::size_t bytes);
void apart_free(void* p);
// Where the numbers lie. Throws Error(Internal) for an address that is not of this memory; null stays null.
float* behind(const float* p);

}  // namespace dnl
