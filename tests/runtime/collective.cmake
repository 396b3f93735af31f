# Tests of runtime/collective.
