# Tests of runtime/training.
paceline_runtime_test(paceline_runtime_training_tests
  SOURCES
    training/checkpoint_faults_test.cc
    training/checkpoint_lock_test.cc
    training/checkpoint_test.cc
    training/epoch_sums_test.cc
    training/learning_rate_test.cc
    training/loss_scale_test.cc
    training/optimizer_test.cc
    training/recipe_test.cc)
