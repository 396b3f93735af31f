set(transport_sources
  transport/patience.cc
  transport/thread_transport.cc)
set(transport_headers
  transport/patience.h
  transport/thread_transport.h)
