set(transport_sources
  transport/messages.cc)
set(transport_headers
  transport/messages.h
  transport/transport.h)
