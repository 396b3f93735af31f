#!/usr/bin/env python3
"""What libnccl-tuner-paceline.so brings into NCCL's process: three symbols, and the C library."""

import os
import subprocess
import unittest

LIBRARY = os.environ["PACELINE_NCCL_TUNER"]


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class Library(unittest.TestCase):
    def test_it_exports_what_nccl_looks_up_and_nothing_else(self):
        names = [line.split()[-1] for line in lines_of("nm", "-D", "--defined-only", LIBRARY)]
        self.assertEqual(sorted(names), [f"ncclTunerPlugin_v{n}" for n in (3, 4, 5)])

    def test_it_needs_the_c_library_only(self):
        needed = [line.split("[")[1].rstrip("]") for line in lines_of("readelf", "-d", LIBRARY) if "(NEEDED)" in line]
        self.assertEqual(needed, ["libc.so.6"])

    def test_it_calls_nothing_that_ends_the_process_or_writes(self):
        called = {line.split()[-1].split("@")[0] for line in lines_of("nm", "-D", "--undefined-only", LIBRARY)}
        self.assertLessEqual(called, {
            "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__",
            "__errno_location", "__stack_chk_fail", "calloc", "close", "free", "fstat", "getenv", "malloc", "memchr",
            "memcmp", "memcpy", "memset", "open", "open64", "fstat64", "read", "strlen"})


if __name__ == "__main__":
    unittest.main()
