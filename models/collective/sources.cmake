set(collective_sources
  collective/all_reduce.cc collective/combinators.cc collective/draw.cc
  collective/halving_doubling.cc collective/hierarchical.cc collective/ring.cc
  collective/schedule.cc collective/verify.cc)
set(collective_headers
  collective/algorithms.h collective/all_reduce.h collective/combinators.h collective/draw.h
  collective/enumerate.h collective/primitives.h collective/schedule.h collective/span.h
  collective/verify.h)
