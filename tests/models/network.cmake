set(network_tests
  models/hugging_face_test.cc models/network_attention_image_test.cc models/network_test.cc models/network_hostile_test.cc models/network_work_test.cc
  models/network_yaml_test.cc models/recompute_test.cc models/transformer_test.cc models/experts_test.cc models/optimizer_test.cc models/zoo_test.cc)
