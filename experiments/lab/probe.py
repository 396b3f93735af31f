#!/usr/bin/env python3
"""What a lab gives raw TCP: latency and bandwidth. Run inside it:

    lab.py run --no-mpi --hosts 4 --rate 250mbit --latency 1ms -- experiments/lab/probe.py

Prints one line of JSON: half of a round trip of one byte (median and best of 50, microseconds), and
the bandwidth of one flow and of a ring of flows, host I to I + 1, all at once (Mbit/s of payload;
the wire carries 5.3% more in headers at an MTU of 1500). A host sends --megabytes each time.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

PORT = 5201


def serve():
    """Echoes single bytes until one says that bulk follows; then counts to the end and answers."""
    listener = socket.create_server(("", PORT))
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(1 << 20)
    while connection.recv_into(room, 1) == 1 and room[:1] == b"p":
        connection.sendall(b"p")
    while connection.recv_into(room) > 0:
        pass
    connection.sendall(b"e")
    connection.close()


def connect(address):
    connection = socket.create_connection((address, PORT))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def half_round_trips(address, count=50):
    """Half of each round trip of one byte, in microseconds."""
    with connect(address) as connection:
        times = []
        for _ in range(count + 1):
            start = time.perf_counter()
            connection.sendall(b"p")
            connection.recv(1)
            times.append((time.perf_counter() - start) / 2 * 1e6)
    return times[1:]


def bandwidth(address, size):
    """The payload of one flow in Mbit/s, until the program acknowledges the last byte."""
    data = bytes(1 << 20)
    with connect(address) as connection:
        connection.sendall(b"b")
        start = time.perf_counter()
        for _ in range(size >> 20):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        return size * 8 / 1e6 / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flow-to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = options.megabytes << 20
    if options.serve:
        serve()
    if options.flow_to:
        print(bandwidth(options.flow_to, size))
        return
    hosts = int(os.environ["LAB_HOSTS"])
    on = str(pathlib.Path(os.environ["LAB_DIRECTORY"]) / "lab-on")
    address = lambda host: f"10.77.0.{host}"
    me = [sys.executable, os.path.abspath(__file__), "--megabytes", str(options.megabytes)]
    for host in range(1, hosts + 1):
        server = subprocess.Popen([on, str(host), *me, "--serve"], stdout=subprocess.PIPE)
        server.stdout.readline()
    times = half_round_trips(address(2))
    pair = bandwidth(address(2), size)
    flows = [subprocess.Popen([on, str(host), *me, "--flow-to", address(host % hosts + 1)],
                              stdout=subprocess.PIPE, text=True) for host in range(1, hosts + 1)]
    ring = [float(flow.communicate()[0]) for flow in flows]
    print(json.dumps({"half_round_trip_us": round(statistics.median(times), 1),
                      "best_half_round_trip_us": round(min(times), 1),
                      "pair_mbit": round(pair, 1), "ring_mbit": round(statistics.mean(ring), 1)}))


if __name__ == "__main__":
    main()
