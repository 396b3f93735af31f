# Tests of runtime/channel, and of how its ranks meet by TCP.
paceline_runtime_test(channel_test SOURCES channel/messages_test.cc channel/rank_threads_test.cc)
if(PACELINE_SODIUM_STATE MATCHES "^[0-9]")
  paceline_runtime_test(tcp_channel_test
    SOURCES channel/job_proof_test.cc channel/tcp_address_test.cc channel/tcp_channel_test.cc
      channel/tcp_handshake_test.cc channel/tcp_strangers_test.cc)
endif()
# The twin of runtime/transport/job_proof.cc that a build with libsodium leaves out.
add_executable(job_proof_absent_test channel/job_proof_absent_test.cc "${PROJECT_SOURCE_DIR}/runtime/transport/job_proof_absent.cc")
target_include_directories(job_proof_absent_test PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(job_proof_absent_test PRIVATE paceline::models paceline_flags GTest::gmock GTest::gtest_main)
gtest_discover_tests(job_proof_absent_test NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES LABELS unit TIMEOUT ${paceline_hang_s})
