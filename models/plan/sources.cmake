set(plan_sources plan/dispatch.cc plan/k_fac.cc plan/make_plan.cc plan/other_systems.cc plan/plan.cc plan/plan_json.cc
  plan/planned_schedule.cc plan/servers.cc plan/strategy.cc plan/ways/library.cc plan/ways/plan_in_making.cc
  plan/ways/preconditioned.cc plan/ways/scheduled.cc plan/ways/served.cc
  plan/ways/sharded.cc)
set(plan_headers plan/dispatch.h plan/k_fac.h plan/plan.h plan/plan_json.h plan/planned_schedule.h plan/servers.h
  plan/strategy.h plan/thresholds.h plan/tuned.h plan/ways/documents.h plan/ways/library.h plan/ways/plan_in_making.h
  plan/ways/preconditioned.h plan/ways/scheduled.h plan/ways/served.h plan/ways/sharded.h plan/ways/traits.h)
