set(transport_sources)
set(transport_headers
  transport/transport.h)
