set(plan_sources plan/dispatch.cc plan/other_systems.cc plan/plan.cc plan/plan_json.cc plan/servers.cc plan/strategy.cc)
set(plan_headers plan/dispatch.h plan/plan.h plan/plan_json.h plan/servers.h plan/strategy.h)
