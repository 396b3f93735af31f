set(layout_sources layout/sharding.cc layout/tensor_placement.cc)
set(layout_headers layout/sharding.h layout/tensor_placement.h)
