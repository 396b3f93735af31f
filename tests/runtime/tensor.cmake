# Tests of runtime/tensor.
