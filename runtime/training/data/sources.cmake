set(data_sources)
set(data_headers
  training/data/dataset.h
  training/data/loader.h)
