#!/usr/bin/env python3
"""Load on `paceline serve` from this machine: requests a second, how long they take, and what memory the
server has before and after.

    PACELINE=build/release/paceline tests/benchmarks/serve_load.py [--seconds 60] [--rate 1000] [--connections 8]

Requests are sent at the rate, whatever the answers do, and a time counts from when the request was due, so
that a server that stalls is seen to (no coordinated omission). One in a hundred asks what nobody has asked
before; the others repeat a few hundred questions. Beside them the null run: the same client against a
server that answers 404, which is what client and sockets take by themselves.
"""

import argparse
import asyncio
import os
import pathlib
import random
import re
import subprocess
import time

QUESTIONS = [f"/predict?model={model}&cluster={cluster}&ranks={ranks}&batch={batch}"
             for model in ("alexnet", "resnet50") for cluster in ("jizhi-p40", "pfn-mn1")
             for ranks in (8, 16, 64, 128) for batch in range(16, 32)]


async def ask(reader, writer, target):
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(re.search(rb"Content-Length: (\d+)", head)[1]))
    return int(head[9:12])


async def connection(port, due_times, targets, begin, times, counts):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for due, target in zip(due_times, targets):
        delay = begin + due - time.perf_counter()
        if delay > 0:
            await asyncio.sleep(delay)
        status = await ask(reader, writer, target)
        times.append(time.perf_counter() - begin - due)
        counts[status] = counts.get(status, 0) + 1
    writer.close()


async def load(port, seconds, rate, connections, target_of):
    times, counts = [], {}
    due = [i / rate for i in range(int(seconds * rate))]
    begin = time.perf_counter() + 0.1
    await asyncio.gather(*(connection(port, due[c::connections], [target_of() for _ in due[c::connections]], begin, times, counts)
                           for c in range(connections)))
    times.sort()
    elapsed = time.perf_counter() - begin
    at = lambda share: 1e3 * times[min(len(times) - 1, int(share * len(times)))]
    return f"{len(times)} requests in {elapsed:.1f} s: {len(times) / elapsed:.0f} /s; p50 {at(.5):.2f} ms, p99 {at(.99):.2f} ms, longest {1e3 * times[-1]:.1f} ms; by status {counts}"


def resident(process):
    pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 1e6:.1f} MB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    server = subprocess.Popen([os.environ["PACELINE"], "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
    draw = random.Random(1)
    fresh = iter(range(1, 1 << 20))
    # One in a hundred is new: a theta that no other question has.
    question = lambda: draw.choice(QUESTIONS) + (f"&theta={1000 + next(fresh)}KiB" if draw.random() < 0.01 else "")
    run = lambda seconds, target_of: asyncio.run(load(port, seconds, options.rate, options.connections, target_of))
    print("null run:", run(min(5, options.seconds), lambda: "/nowhere"))
    for target in QUESTIONS:  # asked once, so that they are kept
        asyncio.run(load(port, 0.01, 100, 1, lambda: target))
    before = resident(server)
    print("load:", run(options.seconds, question))
    print(f"resident: {before} before, {resident(server)} after")
    server.terminate()
    print("exit code", server.wait())


if __name__ == "__main__":
    main()
