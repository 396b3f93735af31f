# Tests of runtime/collective and of the transports that it runs on.
paceline_runtime_test(executor_test SOURCES executor_test.cc)
paceline_runtime_test(thread_transport_test SOURCES thread_transport_test.cc)
