set(network_sources)
set(network_headers
  network/trainable_network.h)
