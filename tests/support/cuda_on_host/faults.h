// Touches of closed memory (memory.h): who did it, in words.
#pragma once

namespace cuda_on_host {

// Installs the handler of SIGSEGV, once. A fault that is none of the double's goes to the handler
// before it.
void catch_faults();

}  // namespace cuda_on_host
