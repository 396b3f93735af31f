set(plan_sources plan/dispatch.cc plan/other_systems.cc plan/plan.cc plan/plan_json.cc plan/strategy.cc)
set(plan_headers plan/dispatch.h plan/plan.h plan/plan_json.h plan/strategy.h)
