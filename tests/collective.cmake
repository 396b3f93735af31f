set(collective_tests
  models/algorithms_test.cc models/draw_test.cc models/schedule_test.cc models/verify_test.cc
  simulator/cost_test.cc simulator/equivalence_test.cc simulator/platform_test.cc simulator/routes_test.cc simulator/step_engine_test.cc
  runtime/sequential_executor_test.cc
  agreement/engine_agreement_test.cc agreement/executor_agreement_test.cc
  agreement/schedule_agreement_test.cc)
