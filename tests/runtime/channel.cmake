# Tests of runtime/channel.
paceline_runtime_test(channel_test SOURCES channel/messages_test.cc channel/rank_threads_test.cc channel/tcp_channel_test.cc)
