set(cluster_tests models/base_test.cc models/cluster_test.cc models/profile_test.cc)
