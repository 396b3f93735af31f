set(plan_sources plan/plan.cc plan/plan_json.cc plan/strategy.cc)
set(plan_headers plan/plan.h plan/plan_json.h plan/strategy.h)
