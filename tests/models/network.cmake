set(network_tests models/network_test.cc models/network_yaml_test.cc models/zoo_test.cc)
