# Tests of runtime/data.
