set(collective_sources
  collective/catalogue.cc collective/closed_form.cc collective/combinators.cc collective/draw.cc collective/exchange.cc
  collective/halving_doubling.cc collective/hierarchical.cc collective/ring.cc
  collective/schedule.cc collective/tree.cc collective/verify.cc)
set(collective_headers
  collective/algorithms.h collective/catalogue.h collective/closed_form.h collective/combinators.h collective/draw.h
  collective/enumerate.h collective/primitives.h collective/primitives/exchange.h
  collective/primitives/halving.h collective/primitives/ring.h collective/primitives/tree.h
  collective/schedule.h collective/span.h collective/verify.h)
