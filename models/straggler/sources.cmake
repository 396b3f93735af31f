set(straggler_sources straggler/stragglers.cc)
set(straggler_headers straggler/stragglers.h)
