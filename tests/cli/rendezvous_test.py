"""paceline train --rendezvous: one process for each rank, without MPI, started by hand or as torchrun
and srun start them.
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from paceline import HANG_S, PACELINE, CommandTest, free_port, run

OPTIONS = {"--model": "cnn-small", "--data": "synthetic", "--batch": "8", "--epochs": "1", "--threads": "1"}
SECRET = "PACELINE_RENDEZVOUS_SECRET"
LAUNCHERS = (SECRET, "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_", "OMPI_", "PMIX_", "TORCHELASTIC_")
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}


def job(words):
    """A small job with these words, which take the place of its own options."""
    own = [word for option, value in OPTIONS.items() if option not in words for word in (option, value)]
    return ["train", *own, *words]


def start(*words, patience="60 s", **environment):
    return subprocess.Popen([PACELINE, *job(words), "--patience", patience], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**CLEAN, **environment})


def ends(processes):
    """Exit code, standard output and standard error of each."""
    results = []
    for process in processes:
        out, err = process.communicate(timeout=HANG_S)
        results.append((process.returncode, out, err))
    return results


def listening_ports(process):
    """Ports at which a process or a child of its listens."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False).stdout.split()
    sockets = set()
    for pid in (str(process), *children):
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(descriptor))
            except OSError:
                pass
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [(words[1].split(":")[0], int(words[1].split(":")[1], 16)) for words in lines if words[3] == "0A" and f"socket:[{words[9]}]" in sockets]


class Rendezvous(CommandTest):
    def meet(self, ranks, *words, of_rank=lambda rank: ()):
        place = f"127.0.0.1:{free_port()}"
        return ends([start("--rendezvous", place, "--ranks", str(ranks), "--rank", str(rank), *words, *of_rank(rank))
                     for rank in reversed(range(ranks))])[::-1]

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def losses(self, path):
        return [line["loss"] for line in self.lines(path) if line["event"] == "iteration"]

    def refused_by_all(self, results, line, code=2):
        for result in results:
            self.assertEqual(result, (code, "", f"paceline: {line}\n"))

    def test_trains_as_threads_do_to_the_bit(self):
        words = ("--precision", "mixed", "--stop-after", "4", "--strategy", "hierarchical")
        threads = self.folder / "threads.jsonl"
        alone = run(*job(words), "--ranks", "3", "--metrics", str(threads))
        self.done(alone)
        processes = self.folder / "processes.jsonl"
        results = self.meet(3, *words, of_rank=lambda rank: ("--metrics", str(processes)) if rank == 0 else ())
        # A processor without BF16 makes the job warn of mixed precision: rank 0 says so, as the threads do.
        self.assertRegex(alone.stderr, r"\A(paceline: warning: mixed precision is slower than --precision fp32 [^\n]*\n)?\Z")
        self.assertEqual([(code, err) for code, _, err in results], [(0, alone.stderr), (0, ""), (0, "")])
        self.assertIn("cnn-small on synthetic: 3 ranks (tcp)", results[0][1])
        self.assertEqual([out for _, out, _ in results[1:]], ["", ""])
        self.assertEqual(len(self.losses(processes)), 4)
        self.assertEqual(self.losses(processes), self.losses(threads))

    def test_takes_ranks_as_torchrun_and_srun_say_them(self):
        expected = self.folder / "expected.jsonl"
        self.done(run(*job(("--ranks", "2", "--stop-after", "2", "--metrics", str(expected)))))
        port = free_port()
        said = {
            "torchrun": (("--rendezvous", "env"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}),
            # torchrun's own store listens at MASTER_PORT.
            "torchrun with a store": (("--rendezvous", "env"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1),
                "TORCHELASTIC_USE_AGENT_STORE": "True"}),
            "srun": (("--rendezvous", f"localhost:{port}"), lambda rank: {
                "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": str(rank)}),
            "options before torchrun": (("--rendezvous", "env", "--ranks", "2"), lambda rank: {
                "RANK": str(rank), "WORLD_SIZE": "64", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}),
        }
        for name, (words, environment) in said.items():
            with self.subTest(name):
                made = self.folder / "made.jsonl"
                made.unlink(missing_ok=True)
                results = ends([start(*words, "--stop-after", "2", "--metrics", str(made), **environment(rank)) for rank in (1, 0)])
                self.assertEqual([(code, err) for code, _, err in results], 2 * [(0, "")])
                self.assertEqual(self.losses(made), self.losses(expected))

    def test_one_rank_meets_nobody(self):
        self.assertEqual(self.meet(1, "--stop-after", "1")[0][0], 0)

    def refused_alone(self, words, line, secret=None, other_secret=None):
        """A rank that does not fit ends with this line; the others go on, and the right rank finds them."""
        right = {"--rendezvous": f"127.0.0.1:{free_port()}", "--ranks": "2", "--stop-after": "2"}

        def start_rank(rank, value, options):
            return start("--rank", rank, *(word for pair in options.items() for word in pair), patience="600 s", **({} if value is None else {SECRET: value}))

        first = start_rank("0", secret, right)
        code, out, err = ends([start_rank("1", other_secret, {**right, **words})])[0]
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertRegex(err, line)
        self.assertEqual([(code, err) for code, _, err in ends([first, start_rank("1", secret, right)])], 2 * [(0, "")])

    def test_ranks_that_do_not_fit_are_refused_and_the_job_goes_on(self):
        self.refused_alone({"--ranks": "3"}, "^paceline: rank 1 was started for 3 ranks, and rank 0 for 2; start all with the same --ranks\n$")
        for words, line in (({"--wire": "bf16"}, 'rank 1 has "wire: bf16", and rank 0 "wire: fp32"; start all ranks with the same options'),
                            ({"--learning-rate": "0.3"}, 'rank 1 has "learning rate: 0.3 for [^"]*", and rank 0 "learning rate: [^"]*"'),
                            ({"--strategy": "hierarchical"}, 'rank 1 has "strategy: hierarchical", and rank 0 "strategy: fused-ring"'),
                            ({"--model": "resnet-small"}, 'rank 1 has "model: resnet-small, [^"]*", and rank 0 "model: cnn-small, '),
                            ({"--stop-after": "3"}, 'rank 1 has "stops after: 3 iterations", and rank 0 "stops after: 2 iterations"'),
                            ({"--timeline": str(self.folder / "timeline.json")}, 'rank 1 has "timeline: one", and rank 0 "timeline: none"')):
            with self.subTest(words):
                self.refused_alone(words, f"^paceline: {line}")

    def test_ranks_with_another_secret_or_none_are_refused_and_the_job_goes_on(self):
        ours, another = "a secret of this very job", "a secret of quite another job"
        same = f"; give all ranks the same {SECRET}\n$"
        for secret, other, line in ((ours, another, "rank 0 has another secret than this rank"), (ours, None, "rank 0 has a secret, and this rank has none"),
                                    (None, ours, "rank 0 has no secret, and this rank has one")):
            with self.subTest(line):
                self.refused_alone({}, f"^paceline: {line}{same}", secret=secret, other_secret=other)

    def test_of_two_processes_that_are_one_rank_the_second_is_refused(self):
        place = ("--rendezvous", f"127.0.0.1:{free_port()}", "--ranks", "3", "--stop-after", "2")
        first = start(*place, "--rank", "0", patience="600 s")
        both = [start(*place, "--rank", "1", patience="600 s") for _ in range(2)]
        end = time.monotonic() + HANG_S
        while all(process.poll() is None for process in both) and time.monotonic() < end:
            time.sleep(0.02)
        last = start(*place, "--rank", "2", patience="600 s")
        results = ends([first, *both, last])
        self.assertEqual(sorted((code, err) for code, _, err in results),
                         [(0, "")] * 3 + [(2, "paceline: two processes say that they are rank 1; give each one of the ranks 0 to 2\n")])

    def test_a_rank_that_ends_before_all_have_come_may_come_again(self):
        place = ("--rendezvous", f"127.0.0.1:{free_port()}", "--ranks", "3", "--stop-after", "2")
        first, gone = (start(*place, "--rank", rank, patience="600 s") for rank in ("0", "1"))
        end = time.monotonic() + HANG_S
        while not listening_ports(gone.pid) and time.monotonic() < end:  # it greets then
            time.sleep(0.02)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(gone.pid)], capture_output=True, text=True, check=True)
        os.kill(int(children.stdout), signal.SIGKILL)
        self.assertEqual(ends([gone])[0][0], 1)
        others = [start(*place, "--rank", rank, patience="600 s") for rank in ("1", "2")]
        self.assertEqual([(code, err) for code, _, err in ends([first, *others])], 3 * [(0, "")])

    def test_the_bits_are_the_same_with_a_secret_that_nothing_shows(self):
        secret = "0123456789abcdef-never-to-be-seen"
        words = ("--stop-after", "2")
        threads = self.folder / "threads.jsonl"
        self.done(run(*job(words), "--ranks", "2", "--metrics", str(threads)))
        processes = self.folder / "processes.jsonl"
        place = f"127.0.0.1:{free_port()}"
        results = ends([start("--rendezvous", place, "--ranks", "2", "--rank", str(rank), *words, "--timeline", str(self.folder / f"timeline{rank}"),
                              *(("--metrics", str(processes)) if rank == 0 else ()), **{SECRET: secret}) for rank in (0, 1)])
        self.assertEqual([code for code, _, _ in results], [0, 0], results)
        self.assertEqual(self.losses(processes), self.losses(threads))
        written = "".join(path.read_text() for path in self.folder.iterdir()) + repr(results)
        self.assertNotIn(secret, written)

    def test_secrets_that_are_too_short_are_refused(self):
        for secret in ("", "x", "0123456789abcde"):
            code, out, err = ends([start("--rendezvous", "127.0.0.1:29500", "--ranks", "2", "--rank", "0", **{SECRET: secret})])[0]
            plural = "" if len(secret) == 1 else "s"
            self.assertEqual((code, out, err), (2, "", f"paceline: {SECRET}: a secret of {len(secret)} byte{plural}; "
                                                       "give at least 16, such as those of openssl rand -hex 32\n"))

    def test_beyond_loopback_a_job_has_a_secret(self):
        # 192.0.2.0/24 is for documentation (RFC 5737), and rank 0 has no such address: nobody is called.
        torchrun = {"WORLD_SIZE": "2", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "29500"}
        for rank in ("0", "1"):
            for words, environment in ((("--rendezvous", "192.0.2.1:29500", "--ranks", "2", "--rank", rank), {}),
                                       (("--rendezvous", "env"), {**torchrun, "RANK": rank})):
                self.assertEqual(ends([start(*words, **environment)])[0],
                                 (2, "", "paceline: 192.0.2.1 is reached beyond this machine, and the job has no secret; make one, and set it on all ranks: "
                                         f"{SECRET}=$(openssl rand -hex 32)\n"))
        self.assertEqual(ends([start("--rendezvous", "192.0.2.1:29500", "--ranks", "2", "--rank", "0", **{SECRET: 16 * "s"})])[0],
                         (1, "", "paceline: cannot listen at 192.0.2.1 port 29500: it is no address of this machine, on which rank 0 runs\n"))

    def test_says_who_did_not_come(self):
        place = f"127.0.0.1:{free_port()}"
        waiting = [start("--rendezvous", place, "--ranks", "4", "--rank", rank, patience=patience) for rank, patience in (("2", "600 s"), ("0", "1 s"))]
        self.refused_by_all(ends(waiting), "cannot start the job: ranks 1, 3 did not come in 1 s", code=1)
        code, out, err = ends([start("--rendezvous", place, "--ranks", "2", "--rank", "1", patience="0.2 s")])[0]
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"^paceline: cannot connect to rank 0 at 127\.0\.0\.1 port \d+: Connection refused\n$")

    def test_wrong_options_are_refused_before_anybody_is_met(self):
        place = ("--rendezvous", "127.0.0.1:29500")
        wrong = {
            ("--rendezvous", "node7", "--ranks", "2", "--rank", "0"): "--rendezvous: 'node7' is no place to meet; give a host and a port",
            ("--rendezvous", "node7:65536", "--ranks", "2", "--rank", "0"): "'node7:65536' is no place to meet",
            ("--rendezvous", "env", "--ranks", "2", "--rank", "0"): "--rendezvous: MASTER_ADDR and MASTER_PORT are not set; give HOST:PORT",
            (*place, "--ranks", "2", "--rank", "2"): "--rank: there is no rank 2 of 2; ranks are 0 to 1",
            (*place, "--ranks", "2", "--rank", "-1"): "--rank",
            (*place, "--ranks", "0", "--rank", "0"): "--ranks",
            (*place, "--ranks", "2"): "--rendezvous: it is not known which rank this process is; add --rank R",
            (*place, "--rank", "0"): "--rendezvous: it is not known how many ranks there are; add --ranks N",
            ("--rank", "1", "--ranks", "2"): "--rank: a rank by itself has nobody to meet; add --rendezvous HOST:PORT",
            (*place, "--ranks", "2", "--rank", "0", "--model", "resnet-smal"): "resnet-smal",
            (*place, "--ranks", "2", "--rank", "0", "--device", "gpu"): "there is no device 'gpu'",
        }
        for words, problem in wrong.items():
            with self.subTest(words):
                code, out, err = ends([start(*words)])[0]
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(problem, err)
        torchrun = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        for words, environment, problem in (
                ((), torchrun, "RANK and WORLD_SIZE say that this is one process of 2; add --rendezvous env"),
                (("--rendezvous", "env"), {**torchrun, "RANK": "x"}, "RANK: 'x' is not a whole number"),
                (("--rendezvous", "env"), {**torchrun, "MASTER_PORT": "0"}, "MASTER_ADDR, MASTER_PORT: '127.0.0.1:0' is no place to meet")):
            code, out, err = ends([start(*words, **environment)])[0]
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(problem, err)

    def test_a_killed_rank_ends_the_others_and_is_named(self):
        place = f"127.0.0.1:{free_port()}"
        metrics = self.folder / "metrics.jsonl"
        processes = [start("--rendezvous", place, "--ranks", "3", "--rank", str(rank), "--epochs", "1000",
                           *(("--metrics", str(metrics)) if rank == 0 else ())) for rank in range(3)]
        end = time.monotonic() + HANG_S
        while (not metrics.exists() or metrics.read_text().count("\n") < 3) and time.monotonic() < end:
            self.assertEqual([process.poll() for process in processes], [None, None, None])
            time.sleep(0.02)
        # The one that trains is the child of the one that was started.
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(processes[2].pid)], capture_output=True, text=True, check=True)
        os.kill(int(children.stdout), signal.SIGKILL)
        results = ends(processes)
        self.assertEqual([code for code, _, _ in results], [1, 1, 1])
        self.assertEqual([err.count("\n") for _, _, err in results], [1, 1, 1], results)
        self.assertRegex(results[2][2], r"^paceline: rank 2 \(process \d+\) was killed by SIGKILL: the job ends\n$")
        # The others lose rank 2, or one that has lost it before.
        self.assertTrue(any("rank 2: it is gone" in results[rank][2] for rank in (0, 1)), results)
        for _, _, err in results[:2]:
            self.assertRegex(err, r"^paceline: cannot (send to|receive from) rank [012]: it is gone\n$")


def greeting(rank, ranks, spoken=b"3PCTNLCP"):
    """Of this protocol: whom it calls, lane, port, purpose, secret, and nonce and digest of the job."""
    return spoken + struct.pack("<iiiiIIII", rank, ranks, 0, 0, 29500, 0, 0, 0) + bytes(64)


class Strangers(CommandTest):
    """Jobs end as if nobody had called. Rank 1 comes when the strangers have done what they do."""

    def call(self, port):
        """A connection to whoever listens at the port, once somebody does, for as long as the test runs."""
        end = time.monotonic() + HANG_S
        while True:
            try:
                stranger = socket.create_connection(("127.0.0.1", port))
                self.addCleanup(stranger.close)
                if stranger.getsockname() != stranger.getpeername():  # else nobody listens, and it has called itself
                    return stranger
                stranger.close()
            except OSError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def trains_beside(self, strangers, ranks=2, patience="600 s", **environment):
        port = free_port()
        place = ("--rendezvous", f"127.0.0.1:{port}", "--ranks", str(ranks), "--stop-after", "2")
        processes = [start(*place, "--rank", "0", patience=patience, **environment)]
        held = strangers(port)
        processes += [start(*place, "--rank", str(rank), patience=patience, **environment) for rank in range(1, ranks)]
        results = ends(processes)
        self.assertEqual([(code, err) for code, _, err in results], ranks * [(0, "")])
        return held

    def test_silent_ones_and_many_of_them(self):
        for count in (5, 500):
            self.trains_beside(lambda port: [self.call(port) for _ in range(count)])

    def test_many_where_files_are_few(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            port = free_port()
            first = start("--rendezvous", f"127.0.0.1:{port}", "--ranks", "2", "--rank", "0", "--stop-after", "2", patience="600 s")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, FILES)
        held = [self.call(port) for _ in range(200)]
        second = start("--rendezvous", f"127.0.0.1:{port}", "--ranks", "2", "--rank", "1", "--stop-after", "2", patience="600 s")
        self.assertEqual([(code, err) for code, _, err in ends([first, second])], 2 * [(0, "")])
        del held

    def test_dripping_ones(self):
        done = threading.Event()

        def drip(stranger):
            for byte in greeting(1, 2):
                try:
                    stranger.send(bytes([byte]))
                except OSError:
                    return
                if done.wait(0.1):
                    return

        def strangers(port):
            drips = [threading.Thread(target=drip, args=(self.call(port),)) for _ in range(3)]
            for each in drips:
                each.start()
            return drips

        held = self.trains_beside(strangers)
        done.set()
        for each in held:
            each.join()

    def test_ones_that_say_the_wrong_thing(self):
        older = lambda rank, ranks: struct.pack("<QiiIi", 0x50434c4e54435032, rank, ranks, 29500, 0)
        said = [older(-1, 2), older(0, 2), older(1, 3), greeting(-1, 2), greeting(0, 2), greeting(7, 2), greeting(1, -2), greeting(1, 2), greeting(1, 2)[:50],
                greeting(1, 2) + 4096 * b"m", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", os.urandom(1000), 8 * b"\xff", b""]

        def strangers(port):
            held = []
            for words in said:
                held.append(self.call(port))
                held[-1].sendall(words)
            return held

        self.trains_beside(strangers)
        self.trains_beside(strangers, **{SECRET: "a secret of this very job"})

    def test_a_rank_of_the_older_protocol_is_told(self):
        def strangers(port):
            stranger = self.call(port)
            stranger.sendall(struct.pack("<QiiIi", 0x50434c4e54435032, 1, 2, 29500, 0))
            heard = b""
            while len(heard) < 12 or len(heard) < 12 + sum(struct.unpack("<II", heard[4:12])):
                part = stranger.recv(4096)
                self.assertTrue(part, heard)
                heard += part
            self.assertEqual(heard[12:], b"this rank speaks protocol 2, and rank 0 protocol 3start all ranks with the same version of Paceline")
            return stranger

        self.trains_beside(strangers)

    def test_at_the_ports_of_other_ranks(self):
        port = free_port()
        place = ("--rendezvous", f"127.0.0.1:{port}", "--ranks", "3", "--stop-after", "2")
        processes = [start(*place, "--rank", str(rank), patience="600 s") for rank in (0, 1)]
        end = time.monotonic() + HANG_S
        while not (ports := listening_ports(processes[1].pid)):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        loopback = "0100007F"
        self.assertEqual([address for address, _ in ports + listening_ports(processes[0].pid)], 2 * [loopback])
        held = [self.call(ports[0][1]) for _ in range(20)]
        for stranger, words in zip(held, (b"GET / HTTP/1.1\r\n\r\n", greeting(2, 3), 4096 * b"\xff", greeting(2, 3)[:24] + struct.pack("<I", 1) + greeting(2, 3)[28:])):
            stranger.sendall(words)
        processes.append(start(*place, "--rank", "2", patience="600 s"))
        self.assertEqual([(code, err) for code, _, err in ends(processes)], 3 * [(0, "")])

    def test_they_do_not_make_patience_longer_and_are_counted(self):
        port = free_port()
        waiting = start("--rendezvous", f"127.0.0.1:{port}", "--ranks", "2", "--rank", "0", patience="3 s")
        held = [self.call(port) for _ in range(3)]
        held[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        code, out, err = ends([waiting])[0]
        self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)
        self.assertRegex(err, r"^paceline: cannot start the job: rank 1 did not come in 3 s(; \d connections? w(as|ere) refused, [^\n]*)?\n$")

    def test_one_that_listens_in_the_place_of_rank_0_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as squatter:
            place = f"127.0.0.1:{squatter.getsockname()[1]}"
            code, out, err = ends([start("--rendezvous", place, "--ranks", "2", "--rank", "1", patience="1 s")])[0]
            self.assertEqual((code, out, err), (1, "", f"paceline: cannot connect to rank 0 at 127.0.0.1 port {place.split(':')[1]}: "
                                                       "what listens there does not answer as a rank does within 1 s\n"))
            code, out, err = ends([start("--rendezvous", place, "--ranks", "2", "--rank", "0", patience="1 s")])[0]
            self.assertEqual((code, out, err), (1, "", f"paceline: cannot listen at 127.0.0.1 port {place.split(':')[1]}: Address already in use\n"))


NAMESPACE = ("unshare", "--net", "--mount", "--fork", "--kill-child")


@unittest.skipUnless(shutil.which("ip") and shutil.which("unshare") and subprocess.run([*NAMESPACE, "true"], stderr=subprocess.DEVNULL).returncode == 0,
                     "network namespaces are not allowed here, or iproute2 is not there")
class BeyondLoopback(CommandTest):
    """A machine of its own, a network namespace, whose address is not loopback."""

    def test_a_job_with_a_secret_trains_and_listens_at_its_address_only(self):
        script = """set -e
ip link set lo up
ip link add lan type bridge
ip addr add 10.9.7.1/24 dev lan
ip link set lan up
"$@" --rank 0 > out0 2> err0 &
first=$!
until ss -Hltn | grep -q :29500; do sleep 0.05; done
ss -Hltn | awk '{print $4}' > listening
"$@" --rank 1 > out1 2> err1
wait $first
"""
        words = (PACELINE, *job(("--rendezvous", "10.9.7.1:29500", "--ranks", "2", "--stop-after", "2", "--patience", "600 s")))
        command = [*NAMESPACE, "sh", "-c", script, "job", *words]
        done = subprocess.run(command, cwd=self.folder, env={**CLEAN, SECRET: "a secret of this very job"}, capture_output=True, text=True, timeout=HANG_S)
        said = {path.name: path.read_text() for path in self.folder.iterdir()}
        self.assertEqual((done.returncode, done.stderr), (0, ""), said)
        self.assertEqual(said["listening"].split(), ["10.9.7.1:29500"])
        self.assertIn("2 ranks (tcp)", said["out0"])
        self.assertEqual(said["err0"] + said["err1"], "")


if __name__ == "__main__":
    unittest.main()
