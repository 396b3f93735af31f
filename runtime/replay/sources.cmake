set(replay_sources
  replay/replay.cc)
set(replay_headers
  replay/replay.h)
