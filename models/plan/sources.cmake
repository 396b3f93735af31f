set(plan_sources plan/plan.cc plan/strategy.cc)
set(plan_headers plan/plan.h plan/strategy.h)
