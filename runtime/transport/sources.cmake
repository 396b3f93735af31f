set(transport_sources
  transport/launcher.cc
  transport/patience.cc
  transport/rendezvous_secret.cc
  transport/tcp_address.cc
  transport/tcp_connections.cc
  transport/tcp_handshake.cc
  transport/tcp_introductions.cc
  transport/tcp_sockets.cc
  transport/tcp_transport.cc
  transport/thread_transport.cc)
set(transport_headers
  transport/launcher.h
  transport/lost_rank.h
  transport/patience.h
  transport/rendezvous_secret.h
  transport/tcp_connections.h
  transport/tcp_sockets.h
  transport/tcp_transport.h
  transport/thread_transport.h
  transport/transport.h)
# How the ranks of a rendezvous know each other.
if(PACELINE_SODIUM_STATE MATCHES "^[0-9]")
  list(APPEND transport_sources transport/job_proof.cc)
else()
  list(APPEND transport_sources transport/job_proof_absent.cc)
endif()
