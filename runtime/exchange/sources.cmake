set(exchange_sources exchange/gradient_exchange.cc exchange/recorder.cc exchange/unit_weights.cc)
set(exchange_headers exchange/gradient_exchange.h exchange/recorder.h exchange/unit_weights.h)
