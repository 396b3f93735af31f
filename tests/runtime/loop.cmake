# Tests of what all parts of the runtime do together.
paceline_runtime_test(paceline_runtime_loop_tests
  SOURCES
    loop/gradient_exchange_test.cc
    loop/late_training_test.cc
    loop/replay_test.cc
    loop/tensor_training_test.cc
    loop/trainer_test.cc
  LIBRARIES paceline_late_device
  ON_AVX2 "*Resume*:Trainer.*")
