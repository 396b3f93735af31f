set(replay_sources
  replay/replay.cc
  replay/script.cc)
set(replay_headers
  replay/replay.h
  replay/script.h)
