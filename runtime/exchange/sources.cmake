set(exchange_sources exchange/gradient_exchange.cc exchange/recorder.cc)
set(exchange_headers exchange/gradient_exchange.h exchange/recorder.h)
