set(timeline_sources timeline/timeline.cc timeline/timeline_reader.cc)
set(timeline_headers timeline/timeline.h)
