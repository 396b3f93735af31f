set(layout_sources layout/layout.cc layout/pipeline_order.cc layout/rank_work.cc layout/sharding.cc layout/stages.cc layout/tensor_placement.cc)
set(layout_headers layout/layout.h layout/pipeline_order.h layout/rank_work.h layout/sharding.h layout/stages.h layout/tensor_placement.h)
