set(tensor_sources)
set(tensor_headers
  tensor/kernels.h)
