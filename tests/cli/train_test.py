"""paceline train, end to end: alone, with ranks as threads, and under mpirun; what it says, what it
leaves behind, and what happens when things go wrong.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from paceline import HANG_S, MPI_ENVIRONMENT, PACELINE, SOURCE, free_port

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


def little(**others):
    """Options of a job of a second, with others added or in their place."""
    options = {"model": "cnn-small", "data": "synthetic", "batch": "32", "epochs": "1", "threads": "1"}
    options.update({name.replace("_", "-"): value for name, value in others.items()})
    return tuple(word for name, value in options.items() if value is not None for word in (f"--{name}", value))


LITTLE = little()


def train(*words):
    return subprocess.run([PACELINE, "train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S,
                          env=MPI_ENVIRONMENT)


def mpirun(*parts, ranks=2):
    """The words of mpirun for one or several groups of options: ranks 0.. take them in turn."""
    words = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    if len(parts) == 1:
        return [*words, "-n", str(ranks), PACELINE, "train", *parts[0]]
    for i, part in enumerate(parts):
        words += ([":"] if i > 0 else []) + ["-n", "1", PACELINE, "train", *part]
    return words


def train_mpi(*parts, ranks=2):
    return subprocess.run(mpirun(*parts, ranks=ranks), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S,
                          env=MPI_ENVIRONMENT)


def ours(text):
    """The lines that paceline wrote, not mpirun."""
    return [line for line in text.splitlines() if line.startswith("paceline: ")]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-train-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name):
        return str(self.folder / name)

    def rejected(self, result, *fragments, code=2):
        self.assertEqual(result.returncode, code, result.stderr)
        lines = ours(result.stderr)
        self.assertEqual(len(lines), 1, result.stderr)
        for fragment in fragments:
            self.assertIn(fragment, lines[0])


class Reports(Folder):
    def test_it_says_what_it_does_and_how_well(self):
        result = train(*little(epochs="2"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("cnn-small on synthetic: 1 rank (threads)", result.stdout)
        self.assertEqual(len(re.findall(r"^ +[12]  ", result.stdout, re.M)), 2, result.stdout)
        self.assertRegex(result.stdout, r"test accuracy \d+\.\d\d% after 64 iterations")
        self.assertEqual(result.stderr, "")

    def test_it_says_in_which_arithmetic_layers_compute(self):
        def arithmetic(*words):
            path = self.path("metrics.jsonl")
            result = train(*LITTLE, *words, "--stop-after", "1", "--metrics", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            start = json.loads(open(path).readline())
            self.assertEqual(start["event"], "start")
            title = result.stdout.splitlines()[0]
            if start["precision"] == "mixed":
                self.assertIn(f"mixed ({start['storage']}, arithmetic {start['arithmetic']})", title)
            else:
                self.assertIn(", fp32, ", title)
            return start["arithmetic"]

        self.assertEqual(arithmetic("--precision", "fp32"), "fp32")
        self.assertEqual(arithmetic("--precision", "mixed", "--storage", "fp16"), "fp32")
        bf16 = arithmetic("--precision", "mixed")
        if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2":
            self.assertEqual(bf16, "fp32")
        else:
            self.assertIn(bf16, ("bf16", "fp32"))

    def test_it_warns_where_mixed_precision_is_slower(self):
        def warning(instructions, *words):
            result = subprocess.run([PACELINE, "train", *LITTLE, "--stop-after", "1", *words], capture_output=True, text=True, timeout=HANG_S,
                                    env={**MPI_ENVIRONMENT, "ONEDNN_MAX_CPU_ISA": instructions})
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr

        self.assertEqual(warning("AVX2"), "")
        slower = "paceline: warning: mixed precision is slower than --precision fp32 on this processor: it computes "
        for ranks in ("1", "2"):
            self.assertEqual(warning("AVX2", "--precision", "mixed", "--ranks", ranks), slower + "in FP32, and rounds each operand and result to BF16\n")
        self.assertEqual(warning("AVX2", "--precision", "mixed", "--storage", "fp16"), slower + "in FP32, and rounds each operand and result to FP16\n")
        # On a processor without AVX-512 it is as above.
        self.assertIn(warning("AVX512_CORE", "--precision", "mixed").removeprefix(slower),
                      ("BF16 by AVX-512 and conversions, without AVX512_BF16 or AMX\n", "in FP32, and rounds each operand and result to BF16\n"))

    def test_json_is_one_document(self):
        result = train(*LITTLE, "--json", "--ranks", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["schema"], "paceline.training/1")
        self.assertEqual((document["ranks"], document["iterations"], document["complete"]), (2, 16, True))
        self.assertEqual((document["precision"], document["arithmetic"]), ("fp32", "fp32"))
        self.assertEqual(len(document["epochs"]), 1)

    def test_metrics_are_json_lines(self):
        path = self.path("metrics.jsonl")
        self.assertEqual(train(*LITTLE, "--metrics", path).returncode, 0)
        lines = [json.loads(line) for line in open(path)]
        self.assertEqual(lines[0]["event"], "start")
        iterations = [line for line in lines if line["event"] == "iteration"]
        self.assertEqual([line["iteration"] for line in iterations], list(range(32)))
        self.assertEqual(lines[-1]["event"], "epoch")
        self.assertLess(iterations[-1]["loss"], iterations[0]["loss"])

    def test_the_timeline_has_the_shape_of_a_prediction(self):
        measured, predicted = self.path("measured.json"), self.path("predicted.json")
        result = train(*LITTLE, "--ranks", "2", "--wire", "fp16", "--theta", "100 KB", "--timeline", measured)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = subprocess.run([PACELINE, "predict", "--model", "cnn-small", "--cluster", str(SOURCE / "docs/examples/lab.yaml"),
                                 "--ranks", "2", "--precision", "fp32", "--strategy", "fused-ring", "--wire", "fp16",
                                 "--theta", "100 KB",
                                 "--timeline", predicted], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

        def tasks(path):
            events = json.load(open(path))["traceEvents"]
            return {event["name"] for event in events if event["ph"] == "X" and event["args"]["iteration"] == 1}

        # --help says how many iterations are recorded.
        text = subprocess.run([PACELINE, "train", "--help-all"], stdout=subprocess.PIPE, text=True).stdout
        said = int(re.search(r"in\s+up\s+to\s+(\d+)\s+iterations", text).group(1))
        events = json.load(open(measured))["traceEvents"]
        self.assertEqual(len({event["args"]["iteration"] for event in events if event["ph"] == "X"}), said)

        inputs = {"read", "decode", "host to device"}
        packs = {name for name in tasks(predicted) if name.startswith("pack")}
        self.assertEqual(tasks(measured), tasks(predicted) - inputs - packs)

    def test_options_that_are_wrong_are_one_line(self):
        for words, fragments in (
                (little(data=None), ("--data is missing",)),
                (little(model=None), ("--model is missing",)),
                ((*LITTLE, "--strategy", "fused-rong"), ("--strategy", "fused-ring")),
                ((*LITTLE, "--recipe", "fashion-mnits"), ("--recipe", "fashion-mnist")),
                (little(batch="0"), ("--batch",)),
                ((*LITTLE, "--overlap", "priority"), ("priority", "wait-free")),
                ((*LITTLE, "--strategy", "nccl"), ("fused-ring",)),
                ((*LITTLE, "--storage", "fp8"), ("--storage", "fp16")),
                ((*LITTLE, "--checkpoint", "/nowhere/at/all"), ("--checkpoint", "/nowhere/at")),
                ((*LITTLE, "--checkpoint-every", "3"), ("--checkpoint",)),
                (little(data="fashion-mnits"), ("--data", "fashion-mnist")),
                (("--model", "resnet50", "--data", "fashion-mnist"), ("1x28x28", "3x224x224")),
                ((*LITTLE, "--resume", ""), ("--resume", "empty")),
                ((*LITTLE, "--metrics", self.path("a"), "--timeline", str(self.folder / "." / "a")), ("--metrics", "--timeline too")),
                ((*LITTLE, "--checkpoint", self.path("a"), "--metrics", self.path("a")), ("--checkpoint", "--metrics too")),
                ((*LITTLE, "--checkpoint", "/dev/null"), ("--checkpoint", "/dev/null")),
                (little(batch="2048"), ("1024", "2048"))):
            with self.subTest(words=words):
                self.rejected(train(*words), *fragments)


class Resume(Folder):
    def weights(self, path):
        return (self.folder / path).read_bytes()

    def test_without_a_terminal_it_says_now_and_then_how_far_it_is(self):
        environment = {**MPI_ENVIRONMENT, "PACELINE_PROGRESS_AFTER_S": "0"}
        done = subprocess.run([PACELINE, "train", *LITTLE, "--stop-after", "3"], capture_output=True, text=True, env=environment, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall(r"^epoch 1, batch [123] of \d+: loss \d+\.\d{3}, accuracy \d+\.\d%, \d+ images/s$", done.stderr, re.M)), 3, done.stderr)
        self.assertRegex(done.stdout, r"stopped after 3 iterations\nthe last of them: loss \d+\.\d{3}, accuracy \d+\.\d%, \d+ images/s\n$")
        self.assertEqual(train(*LITTLE, "--stop-after", "3").stderr, "")

    def test_an_interrupted_run_ends_with_the_bytes_of_a_whole_one(self):
        for extra in (("--precision", "fp32"), ("--precision", "mixed", "--storage", "fp16"),
                      ("--precision", "mixed", "--overlap", "double-buffered")):
            with self.subTest(extra=extra):
                words = (*LITTLE, "--ranks", "2", *extra)
                whole, part = f"whole-{extra[-1]}", f"part-{extra[-1]}"  # a checkpoint replaces no other job's
                self.assertEqual(train(*words, "--checkpoint", self.path(whole)).returncode, 0)
                stopped = train(*words, "--checkpoint", self.path(part), "--stop-after", "7")
                self.assertEqual(stopped.returncode, 0, stopped.stderr)
                self.assertIn("stopped after 7 iterations", stopped.stdout)
                resumed = train(*words, "--checkpoint", self.path(part), "--resume", self.path(part))
                self.assertEqual(resumed.returncode, 0, resumed.stderr)
                self.assertEqual(self.weights(whole), self.weights(part))

    def test_shards_under_mpirun_go_on_with_threads(self):
        for strategy in ("zero1", "zero2", "fsdp", "hsdp"):
            with self.subTest(strategy):
                self.check_shards(strategy)

    def check_shards(self, strategy):
        words = (*LITTLE, "--theta", "64KiB", "--strategy", strategy, *(("--group", "1") if strategy == "hsdp" else ()))
        threads = ("--ranks", "3")
        self.assertEqual(train(*words, *threads, "--checkpoint", self.path(f"{strategy}-whole")).returncode, 0)
        mpi = train_mpi((*words, "--checkpoint", self.path(f"{strategy}-part"), "--stop-after", "5"), ranks=3)
        self.assertEqual(mpi.returncode, 0, mpi.stderr)
        resumed = train(*words, *threads, "--checkpoint", self.path(f"{strategy}-part"), "--resume", self.path(f"{strategy}-part"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.weights(f"{strategy}-part"), self.weights(f"{strategy}-whole"))

    def test_under_mpirun_as_with_threads(self):
        words = (*LITTLE, "--wire", "bf16")
        self.assertEqual(train(*words, "--ranks", "2", "--checkpoint", self.path("threads")).returncode, 0)
        result = train_mpi((*words, "--checkpoint", self.path("mpi")))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 ranks (open-mpi)", result.stdout)
        self.assertEqual(self.weights("threads"), self.weights("mpi"))


class LongJob(Folder):
    """A job that goes on until it is asked to stop, and has begun."""

    def started(self, command, metrics):
        pathlib.Path(metrics).unlink(missing_ok=True)
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=MPI_ENVIRONMENT,
                               start_new_session=True)
        self.addCleanup(lambda: job.poll() is None and os.killpg(job.pid, signal.SIGKILL))
        deadline = time.time() + HANG_S
        while time.time() < deadline and not (os.path.exists(metrics) and '"iteration":3,' in pathlib.Path(metrics).read_text()):
            time.sleep(0.05)
        self.assertIsNone(job.poll(), "the job has begun")
        return job

    def words(self, *others):
        return (*little(epochs="100000"), "--metrics", self.path("metrics.jsonl"), *others)


class Signals(LongJob):
    """A job that is asked to stop, as Slurm preempts and a user presses Ctrl-C. train_signal_test.py has what waits for Open MPI."""

    def stopped_after(self, stdout, name, path):
        match = re.search(rf"^stopped by {name} after (\d+) iterations; go on with --resume {re.escape(path)}$", stdout, re.M)
        self.assertIsNotNone(match, stdout)
        return int(match.group(1))

    def test_it_finishes_the_iteration_and_writes_a_checkpoint(self):
        for ranks, number, name, code in (("1", signal.SIGTERM, "SIGTERM", 143), ("2", signal.SIGINT, "SIGINT", 130),
                                          ("1", signal.SIGHUP, "SIGHUP", 129), ("2", signal.SIGQUIT, "SIGQUIT", 131),
                                          ("2", signal.SIGUSR1, "SIGUSR1", 138), ("1", signal.SIGUSR2, "SIGUSR2", 140)):
            with self.subTest(ranks=ranks, name=name):
                path = self.path(name)
                words = self.words("--ranks", ranks, "--checkpoint", path)
                job = self.started([PACELINE, "train", *words], self.path("metrics.jsonl"))
                os.kill(job.pid, number)
                stdout, stderr = job.communicate(timeout=HANG_S)
                self.assertEqual((job.returncode, stderr), (code, ""))
                iterations = self.stopped_after(stdout, name, path)
                lines = [json.loads(line) for line in open(self.path("metrics.jsonl"))]
                done = max(line["iteration"] for line in lines if line["event"] == "iteration") + 1
                self.assertEqual(done, iterations)
                self.assertEqual((lines[-1]["event"], lines[-1]["iteration"]), ("checkpoint", iterations))
                resumed = train(*little(epochs="100000"), "--ranks", ranks, "--resume", path, "--stop-after", "2", "--json")
                self.assertEqual((resumed.returncode, json.loads(resumed.stdout)["iterations"]), (0, 2), resumed.stderr)

    def test_without_a_checkpoint_it_says_that_nothing_is_saved(self):
        job = self.started([PACELINE, "train", *self.words("--json")], self.path("metrics.jsonl"))
        os.kill(job.pid, signal.SIGTERM)
        stdout, stderr = job.communicate(timeout=HANG_S)
        self.assertEqual((job.returncode, stderr), (143, ""))
        document = json.loads(stdout)
        self.assertEqual((document["complete"], document["stopped_by"]), (False, "SIGTERM"))
        job = self.started([PACELINE, "train", *self.words()], self.path("metrics.jsonl"))
        os.kill(job.pid, signal.SIGTERM)
        stdout, _ = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, 143)
        self.assertRegex(stdout, r"stopped by SIGTERM after \d+ iterations; no checkpoint was asked for, so nothing is saved")

    def test_under_mpirun_all_ranks_stop_after_one_iteration(self):
        for number, name, code in ((signal.SIGTERM, "SIGTERM", 143), (signal.SIGHUP, "SIGHUP", 129), (signal.SIGUSR1, "SIGUSR1", 138)):
            with self.subTest(name):
                path = self.path(name)
                job = self.started(mpirun(self.words("--checkpoint", path)), self.path("metrics.jsonl"))
                # One rank is told, as srun --signal and a shell would tell it: its supervisor.
                for pid in subprocess.check_output(["pgrep", "-P", str(job.pid)], text=True).split():
                    if "OMPI_COMM_WORLD_RANK=1\0" in pathlib.Path(f"/proc/{pid}/environ").read_text():
                        os.kill(int(pid), number)
                stdout, stderr = job.communicate(timeout=HANG_S)
                self.assertEqual(job.returncode, code, stderr)
                self.assertEqual(ours(stderr), [])
                self.stopped_after(stdout, name, path)
                resumed = train_mpi((*self.words("--resume", path), "--stop-after", "2"))
                self.assertEqual(resumed.returncode, 0, resumed.stderr)

    def test_a_terminal_that_closes_signals_a_rank_and_its_supervisor(self):
        path = self.path("checkpoint")
        # A job of one rank that a launcher started: its process group is the supervisor and the rank.
        words = (*self.words("--checkpoint", path), "--rendezvous", f"127.0.0.1:{free_port()}", "--ranks", "1", "--rank", "0")
        for number, code in ((signal.SIGHUP, 129), (signal.SIGQUIT, 131)):
            job = self.started([PACELINE, "train", *words], self.path("metrics.jsonl"))
            os.killpg(job.pid, number)
            stdout, stderr = job.communicate(timeout=HANG_S)
            self.assertEqual((job.returncode, stderr), (code, ""))
            self.stopped_after(stdout, signal.Signals(number).name, path)

    def test_a_hang_up_stays_ignored_under_nohup(self):
        for launched in ((), ("--rendezvous", f"127.0.0.1:{free_port()}", "--ranks", "1", "--rank", "0")):
            with self.subTest(launched=launched):
                words = self.words("--checkpoint", self.path("checkpoint"), *launched)
                job = self.started(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", PACELINE, "train", *words], self.path("metrics.jsonl"))
                os.killpg(job.pid, signal.SIGHUP)
                os.killpg(job.pid, signal.SIGTERM)
                stdout, stderr = job.communicate(timeout=HANG_S)
                self.assertEqual((job.returncode, stderr), (143, ""))
                self.stopped_after(stdout, "SIGTERM", self.path("checkpoint"))


class OneCheckpoint(LongJob):
    """Two jobs that would write their checkpoints to one path."""

    def test_the_second_job_is_refused_until_the_first_has_ended(self):
        path = self.path("checkpoint")
        words = ("--checkpoint", path)
        job = self.started([PACELINE, "train", *self.words(*words, "--ranks", "2")], self.path("metrics.jsonl"))
        other = train(*LITTLE, "--seed", "2", *words)
        self.rejected(other, f"{path}: process {job.pid} on ", "writes its checkpoints there")
        self.assertEqual(other.stdout, "")
        self.rejected(train_mpi((*LITTLE, *words)), f"process {job.pid} on ")
        os.kill(job.pid, signal.SIGTERM)
        job.communicate(timeout=HANG_S)
        self.assertEqual(sorted(os.listdir(self.folder)), ["checkpoint", "metrics.jsonl"])
        resumed = train(*little(epochs="100000"), "--ranks", "2", "--resume", path, *words, "--stop-after", "2")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)

    def test_a_job_that_is_killed_keeps_nobody_out(self):
        path = self.path("checkpoint")
        words = ("--checkpoint", path, "--checkpoint-every", "2")
        for command in ([PACELINE, "train", *self.words(*words, "--ranks", "2")], mpirun(self.words(*words))):
            job = self.started(command, self.path("metrics.jsonl"))
            rank = re.search(r"process (\d+) on", (self.folder / "checkpoint.lock").read_text()).group(1)
            os.kill(int(rank), signal.SIGKILL)
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate(timeout=HANG_S)
            deadline = time.time() + HANG_S
            while os.path.exists(f"/proc/{rank}") and time.time() < deadline:
                time.sleep(0.05)
            self.assertIn("checkpoint.lock", os.listdir(self.folder))
            resumed = train(*little(epochs="100000"), "--ranks", "2", "--resume", path, *words, "--stop-after", "2")
            self.assertEqual(resumed.returncode, 0, resumed.stderr)

    def test_a_file_of_somebody_else_is_no_lock(self):
        lock = self.folder / "checkpoint.lock"
        lock.write_text("precious\n")
        self.rejected(train(*LITTLE, "--checkpoint", self.path("checkpoint")), "checkpoint.lock, which is no lock of paceline")
        self.assertEqual(lock.read_text(), "precious\n")


class Faults(Folder):
    def checkpoint(self):
        path = self.path("checkpoint")
        self.assertEqual(train(*LITTLE, "--checkpoint", path, "--stop-after", "3").returncode, 0)
        return path

    def test_a_damaged_checkpoint_is_named(self):
        path = self.checkpoint()
        whole = pathlib.Path(path).read_bytes()
        for damage in (whole[:len(whole) // 2], whole[:-1], b"", whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:],
                       whole[:-5] + bytes([whole[-5] ^ 16]) + whole[-4:]):
            pathlib.Path(path).write_bytes(damage)
            self.rejected(train(*LITTLE, "--resume", path), path)

    def test_a_checkpoint_that_is_not_there(self):
        self.rejected(train(*LITTLE, "--resume", self.path("none")), "none")

    def test_a_checkpoint_of_another_job(self):
        path = self.checkpoint()
        self.rejected(train(*LITTLE, "--resume", path, "--seed", "7"), "seed: 1", "seed: 7")

    @unittest.skipUnless(os.geteuid() == 0, "mounts a small file system")
    def test_a_full_disk_leaves_the_last_checkpoint(self):
        path = self.checkpoint()
        size = os.path.getsize(path)
        script = (f"mount -t tmpfs -o size={size * 3 // 2} none {self.folder}/small && cp {path} {self.folder}/small/c && "
                  f"{PACELINE} train {' '.join(LITTLE)} --checkpoint {self.folder}/small/c --resume {path}; code=$?; "
                  f"cmp {path} {self.folder}/small/c && ls {self.folder}/small && exit $code")
        (self.folder / "small").mkdir()
        result = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=HANG_S, env=MPI_ENVIRONMENT)
        self.rejected(result, "No space left on device", code=1)
        self.assertEqual(result.stdout.splitlines()[-1], "c")

    def test_metrics_on_a_full_disk(self):
        self.rejected(train(*LITTLE, "--metrics", "/dev/full"), "/dev/full", "No space left on device", code=1)

    def test_a_run_that_is_refused_leaves_old_metrics(self):
        path = pathlib.Path(self.path("metrics.jsonl"))
        old = '{"event":"start"}\n'
        path.write_text(old)
        self.rejected(train(*little(batch="5000"), "--metrics", str(path)), "5000")
        self.rejected(train(*LITTLE, "--metrics", str(path), "--resume", self.path("none")), "none")
        self.assertEqual(path.read_text(), old)

    def test_a_cut_line_of_metrics_stays_a_line(self):
        path = pathlib.Path(self.path("metrics.jsonl"))
        checkpoint = self.checkpoint()
        path.write_text('{"event": "iter')
        self.assertEqual(train(*LITTLE, "--resume", checkpoint, "--metrics", str(path)).returncode, 0)
        lines = path.read_text().splitlines()
        self.assertEqual(lines[0], '{"event": "iter')
        self.assertEqual(json.loads(lines[1])["event"], "start")

    def test_a_loss_that_is_no_number_ends_the_run(self):
        path = self.path("checkpoint")
        self.rejected(train(*little(learning_rate="1000000"), "--checkpoint", path), "loss is no number", "learning rate", code=1)

    def test_a_checkpoint_of_another_network(self):
        network = (SOURCE / "docs/examples/tiny-net.yaml").read_text()
        path = pathlib.Path(self.path("net.yaml"))
        path.write_text(network)
        words = (*little(model=str(path)), "--checkpoint", self.path("checkpoint"), "--stop-after", "2")
        result = train(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        other = network.replace("name: relu2, kind: relu", "name: relu2, kind: dropout")
        self.assertNotEqual(other, network)
        path.write_text(other)
        self.rejected(train(*little(model=str(path)), "--resume", self.path("checkpoint")), "layer ", "{name: relu2, kind: relu}", "{name: relu2, kind: dropout, probability: 0.5}")

    def test_only_one_rank_writes_a_checkpoint(self):
        self.rejected(train_mpi(LITTLE, (*LITTLE, "--checkpoint", self.path("c"))), "rank 1", "checkpoint: one")
        self.rejected(train_mpi((*LITTLE, "--streams", "2"), LITTLE), "streams")
        self.rejected(train_mpi(LITTLE, (*LITTLE, "--resume", self.checkpoint())), "rank 1", "resumes: yes")

    def test_a_checkpoint_replaces_no_other_file(self):
        path = pathlib.Path(self.path("thesis.tex"))
        path.write_text("a thesis\n")
        self.rejected(train(*LITTLE, "--checkpoint", str(path)), str(path), "a file is there", "move the file away")
        self.assertEqual(path.read_text(), "a thesis\n")
        path = self.checkpoint()
        before = pathlib.Path(path).read_bytes()
        self.rejected(train(*LITTLE, "--seed", "7", "--checkpoint", path), path, "another job", "seed: 7")
        self.rejected(train_mpi((*LITTLE, "--checkpoint", path)), path, "another job", "ranks: 1")
        self.assertEqual(pathlib.Path(path).read_bytes(), before)
        for words in ((), ("--resume", path)):
            result = train(*LITTLE, "--checkpoint", path, "--stop-after", "1", *words)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_data_that_ends_early(self):
        if not FASHION.is_dir():
            self.skipTest("dataset-fashion-mnist is not installed")
        folder = self.folder / "data"
        shutil.copytree(FASHION, folder)
        images = folder / "train-images-idx3-ubyte.gz"
        whole = images.read_bytes()
        words = ("--model", "cnn-small", "--data", str(folder), "--epochs", "1")
        images.write_bytes(whole[:len(whole) // 2])
        self.rejected(train(*words), "train-images-idx3-ubyte.gz")
        with gzip.open(images, "wb", 1) as file:
            file.write(struct.pack(">4i", 0x803, 60000, 28, 28) + b"\0" * 1000)
        self.rejected(train(*words), "train-images-idx3-ubyte.gz")

    def test_ranks_with_different_plans(self):
        result = train_mpi((*LITTLE, "--strategy", "ring"), (*LITTLE, "--strategy", "fused-ring"))
        self.rejected(result, "rank 1", "strategy: fused-ring", "strategy: ring")

    def test_a_rank_that_is_killed_ends_the_job_and_is_named(self):
        path = self.path("checkpoint")
        metrics = self.path("metrics.jsonl")
        words = (*little(epochs="100000"), "--checkpoint", path, "--checkpoint-every", "10", "--metrics", metrics)
        job = subprocess.Popen(mpirun(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=MPI_ENVIRONMENT,
                               start_new_session=True)
        self.addCleanup(lambda: job.poll() is None and os.killpg(job.pid, signal.SIGKILL))
        deadline = time.time() + HANG_S
        while time.time() < deadline and not (os.path.exists(metrics) and '"iteration":25,' in open(metrics).read()):
            time.sleep(0.05)
        # The process that computes is the child of the one that mpirun started.
        ranks = [int(pid) for pid in subprocess.check_output(["pgrep", "-P", str(job.pid)], text=True).split()]
        victim = None
        for pid in ranks:
            if "OMPI_COMM_WORLD_RANK=1\0" in open(f"/proc/{pid}/environ").read():
                victim = int(subprocess.check_output(["pgrep", "-P", str(pid)], text=True).split()[0])
        self.assertIsNotNone(victim)
        os.kill(victim, signal.SIGKILL)
        _, stderr = job.communicate(timeout=30)
        self.assertEqual(job.returncode, 1, stderr)
        self.assertEqual(ours(stderr)[0][:len("paceline: rank 1 (process ")], "paceline: rank 1 (process ", stderr)
        self.assertIn(f"was killed by SIGKILL: the job ends; go on with --resume {path}", stderr)
        for pid in ranks:
            self.assertFalse(os.path.exists(f"/proc/{pid}") and "paceline" in open(f"/proc/{pid}/cmdline").read())
        resumed = train_mpi((*words, "--resume", path, "--stop-after", "5"))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)


if __name__ == "__main__":
    unittest.main()
