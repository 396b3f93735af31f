# Tests of runtime/training.
