set(layout_sources layout/layer_placement.cc layout/layout.cc layout/pipeline_order.cc layout/rank_work.cc layout/sharding.cc layout/stages.cc layout/tensor_part.cc layout/tensor_placement.cc)
set(layout_headers layout/layer_placement.h layout/layout.h layout/pipeline_order.h layout/rank_work.h layout/sharding.h layout/stages.h layout/tensor_part.h layout/tensor_placement.h)
