"""The output of nccl-tests with times of our own."""

HEADER = """# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
"""
COLUMNS = """#
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def written(rows, ranks=16, nodes=2, type_="float"):
    """The output of all_reduce_perf with these sizes and times, in us."""
    text = HEADER + "".join(f"#   Rank {rank:2} Pid  {100 + rank} on node-{rank * nodes // ranks} device {rank % (ranks // nodes):2} [0x0a] H200\n" for rank in range(ranks)) + COLUMNS
    for size, time_us in rows:
        algbw = size / time_us / 1e3
        busbw = algbw * 2 * (ranks - 1) / ranks
        cells = f"{time_us:.6g} {algbw:.6f} {busbw:.6f} 0e+00"
        text += f"{size} {size // 4} {type_} sum {cells} {cells}\n"
    return text
