set(plan_sources plan/plan.cc plan/precision.cc plan/profile.cc plan/stragglers.cc plan/strategy.cc)
set(plan_headers plan/plan.h plan/precision.h plan/profile.h plan/stragglers.h plan/strategy.h)
