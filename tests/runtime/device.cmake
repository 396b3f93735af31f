# Tests of runtime/device, and of the device on which other tests run.
paceline_runtime_test(device_test
  SOURCES
    device/copies_test.cc
    device/cpu_device_test.cc
    device/host_memory_test.cc
    device/late_device_test.cc
  LIBRARIES paceline_late_device)
