set(plan_sources plan/plan.cc plan/precision.cc plan/profile.cc plan/strategy.cc)
set(plan_headers plan/plan.h plan/precision.h plan/profile.h plan/strategy.h)
