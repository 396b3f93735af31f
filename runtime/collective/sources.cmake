set(collective_sources
  collective/executor.cc
  collective/sequential_executor.cc)
set(collective_headers
  collective/collective_executor.h
  collective/executor.h
  collective/sequential_executor.h)
