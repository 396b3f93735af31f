set(exchange_sources exchange/bucket_collectives.cc exchange/gradient_exchange.cc exchange/recorder.cc exchange/tensor_sums.cc exchange/unit_weights.cc)
set(exchange_headers exchange/bucket_collectives.h exchange/gradient_exchange.h exchange/recorder.h exchange/tensor_sums.h exchange/unit_weights.h)
