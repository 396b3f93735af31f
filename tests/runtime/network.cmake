# Tests of runtime/network.
paceline_runtime_test(paceline_runtime_network_tests
  SOURCES
    network_layers_test.cc
    network_modes_test.cc
    network_sequences_test.cc
    cpu_precision_test.cc
    network_parts_test.cc
    network_test.cc
    steps/layer_steps_test.cc
  ON_AVX2 "NetworkModes.*:RoundTo.*:TrainableNetwork.*-*EveryNetworkOfTheZoo*")
paceline_thorough(paceline_runtime_network_tests)
