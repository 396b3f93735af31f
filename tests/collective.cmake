set(collective_tests
  models/schedule_test.cc models/verify_test.cc simulator/equivalence_test.cc simulator/step_engine_test.cc
  agreement/engine_agreement_test.cc agreement/executor_agreement_test.cc)
