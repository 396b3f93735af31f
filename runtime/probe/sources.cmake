set(probe_sources probe/device_probe.cc)
set(probe_headers probe/device_probe.h)
