set(plan_sources plan/dispatch.cc plan/k_fac.cc plan/other_systems.cc plan/plan.cc plan/plan_json.cc plan/servers.cc plan/make_plan.cc plan/strategy.cc)
set(plan_headers plan/dispatch.h plan/k_fac.h plan/plan.h plan/plan_json.h plan/servers.h plan/strategy.h plan/tuned.h)
