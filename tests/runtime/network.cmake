# Tests of runtime/network.
