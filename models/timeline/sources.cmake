set(timeline_sources timeline/rank_times.cc timeline/timeline.cc timeline/timeline_reader.cc
  timeline/timeline_writer.cc)
set(timeline_headers timeline/rank_times.h timeline/timeline.h)
