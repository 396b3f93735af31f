set(collective_sources
  collective/catalogue.cc collective/combinators.cc collective/draw.cc collective/exchange.cc
  collective/export/goal.cc collective/export/messages.cc collective/export/msccl.cc
  collective/export/svg.cc collective/halving_doubling.cc collective/hierarchical.cc
  collective/ring.cc collective/schedule.cc collective/tree.cc collective/verify.cc)
set(collective_headers
  collective/algorithms.h collective/catalogue.h collective/combinators.h collective/draw.h
  collective/enumerate.h collective/export/goal.h collective/export/messages.h
  collective/export/msccl.h collective/export/svg.h collective/primitives.h collective/primitives/exchange.h
  collective/primitives/halving.h collective/primitives/ring.h collective/primitives/tree.h
  collective/schedule.h collective/span.h collective/verify.h)
