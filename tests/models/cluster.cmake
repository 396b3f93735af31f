set(cluster_tests
  models/base_messages_test.cc models/base_quantities_test.cc models/base_test.cc
  models/document_test.cc models/json_reader_test.cc models/json_test.cc models/place_in_test.cc models/svg_axis_test.cc models/utf8_test.cc models/xml_text_test.cc
  models/cluster_catalog_test.cc models/cluster_effects_test.cc models/cluster_fabric_test.cc models/cluster_hostile_test.cc models/cluster_test.cc
  models/alike_slots_test.cc models/link_rules_test.cc
  models/profile_hostile_test.cc models/profile_test.cc models/simgrid_xml_test.cc)
