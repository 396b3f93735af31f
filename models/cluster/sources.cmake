set(cluster_sources
  cluster/alike_slots.cc cluster/catalog.cc cluster/catalog_file.cc cluster/cluster_figures.cc cluster/cluster_json.cc cluster/cluster_reader.cc
  cluster/effects_reader.cc cluster/expenses_reader.cc
  cluster/fabric.cc cluster/link_rules.cc cluster/other_nic.cc cluster/part_reader.cc cluster/placement.cc cluster/simgrid_xml.cc)
set(cluster_headers
  cluster/catalog.h cluster/catalog_parts.h cluster/cluster.h cluster/cluster_figures.h cluster/cluster_json.h cluster/effects.h cluster/expenses.h
  cluster/fabric.h cluster/link_rules.h cluster/other_nic.h cluster/platform.h cluster/placement.h cluster/simgrid_xml.h cluster/yaml.h)
set(cluster_embedded cluster/catalog/clusters.yaml cluster/catalog/devices.yaml cluster/catalog/effects.yaml cluster/catalog/expenses.yaml cluster/catalog/links.yaml)
