"""No option is read and ignored: for each command and each of its options there is a value that changes
what is computed, or the command refuses the option.

An option that a command declares and this file does not know fails the test: give it two values below
that make a difference.
"""

import json
import re
import unittest

from paceline import CommandTest, run

# Options whose effect other tests show, as they take a file or run for a time.
OF_MEMORY = {"--ignore-memory", "--optimizer", "--optimizer-states"}
OF_JOBS = {"--nodes"} | OF_MEMORY
ELSEWHERE = {"predict": {"--plan"} | OF_JOBS, "scale": OF_MEMORY, "show plan": {"--plan"} | OF_JOBS, "tune": {"--time-limit"} | OF_JOBS,
             "cost": {"--plan", "--phases"} | OF_JOBS, "plan-capacity": {"--phases"} | OF_MEMORY, "time": {"--against", "--fail-below"},
             "export": {"--model", "--profile", "--nccl", "--measured", "--batch", "--precision"}}
# How something is printed or where it goes, and not what.
FORMS = {"--json", "--csv", "--markdown", "--json-out", "--csv-out", "--markdown-out", "--html", "--provenance", "--wide", "--top", "--help", "--plan-out",
         "--timeline", "--plot", "--output", "--per-chunk", "--force"}
# What documents repeat of the question.
ECHO = {"given_thresholds", "partly_taken", "thresholds", "overlap", "engine", "placement", "nic", "what_if", "profile", "rests_on", "warnings",
        "batch_per_rank", "accumulate", "precision", "sequence", "gradient_scale", "exact_compute", "plan", "wire_type", "cut_short",
        "plans_evaluated", "asked", "source", "compute_source", "timed_by", "stragglers", "chunk_counts", "seed"}

FUSED = ("--strategy", "fused-ring")
LANGUAGE = ("--model", "gpt2-small", "--batch", "2")
EXPERTS = ("--model", "qwen3-30b-a3b", "--sequence", "1024", "--batch", "1", "--cluster", "h200-ndr", "--strategy", "zero1")
# Options of a job, each with two values (None: left out) and what stands beside them.
JOB = {
    "--model": (("alexnet", "resnet50"), ()),
    "--cluster": (("jizhi-p40", "goyal-p100"), ()),
    "--ranks": (("8", "16"), ()),
    "--strategy": (("ring", "fused-ring"), ()),
    "--batch": (("16", "32"), ()),
    "--accumulate": (("1", "4"), ()),
    "--recompute": (("none", "full"), ()),
    "--global-batch": (("1024", "2048"), ()),
    "--offload": ((None, "optimizer"), LANGUAGE),
    "--tensor": (("1", "2"), LANGUAGE),
    "--no-sequence-parallel": ((None, ""), (*LANGUAGE, "--tensor", "2")),
    "--tensor-overlap": ((None, ""), (*LANGUAGE, "--tensor", "2")),
    "--context": (("1", "2"), LANGUAGE),
    "--expert": (("4", "8"), EXPERTS),
    "--tokens-once": ((None, ""), (*EXPERTS, "--expert", "8")),
    "--pipeline": (("1", "2"), LANGUAGE),
    "--chunks": (("1", "2"), (*LANGUAGE, "--pipeline", "2", "--accumulate", "4")),
    "--pipeline-schedule": (("1f1b", "gpipe"), (*LANGUAGE, "--pipeline", "2", "--accumulate", "4")),
    "--reshard-after-forward": (("yes", "no"), ("--strategy", "fsdp")),
    "--placement": (("node-major", "round-robin"), ("--strategy", "ring")),
    "--nic": ((None, "10 Gbit/s"), ()),
    "--sequence": (("128", "256"), ("--model", "bert-base")),
    "--precision": (("fp32", "mixed"), ()),
    "--wire": (("fp32", "fp16"), ()),
    "--overlap": (("wait-free", "none"), ()),
    "--profile": ((None, "none"), ()),
    "--throughput": ((None, "100"), ()),
    "--node-throughput": ((None, "500"), ()),
    "--slowdown": (("1", "1.5"), ("--throughput", "300")),
    "--beside-traffic": (("1", "2"), ("--throughput", "300")),
    "--stack": (("eager", "graphs"), ("--profile", "none")),
    "--attention-kernel": (("flash-2", "flash-3"), ("--model", "llama-tiny", "--cluster", "h100-ndr", "--batch", "8")),
    "--compute-efficiency": (("30%", "60%"), ("--profile", "none")),
    "--scale-gradients": (("1", "0.25"), ()),
    "--exact-compute": ((None, ""), ()),
    "--engine": (("step", "flow"), ("--strategy", "bidirectional-ring")),
    "--nccl": (("2.20", "2.28"), ("--strategy", "nccl")),
    "--others": ((None, ""), ()),
    "--what-if": ((None, "bandwidth=2"), ()),
    "--theta": (("64KiB", "64MiB"), FUSED),
    "--eta": (("1KiB", "16MiB"), ("--strategy", "hybrid", "--group", "8", "--theta", "1MiB")),
    "--group": (("2", "8"), ("--strategy", "hierarchical")),
    "--segments": (("1", "16"), ("--strategy", "double-binary-tree")),
    "--rings": (("1", "2"), ("--strategy", "multi-ring")),
    "--servers": (("1", "2"), ("--strategy", "parameter-server")),
    "--server-placement": (("round-robin", "balanced"), ("--strategy", "parameter-server", "--servers", "2")),
    "--streams": (("1", "4"), ("--strategy", "fused-ring", "--theta", "1MiB")),
    "--cycle": (("1ms", "40ms"), ("--strategy", "horovod")),
    "--horovod": (("0.16", "0.21"), ("--strategy", "horovod")),
    "--partition": (("1MB", "16MB"), ("--strategy", "byte-scheduler")),
    "--credit": (("1MB", "64MB"), ("--strategy", "byte-scheduler")),
    "--server-machines": (("1", "4"), ("--strategy", "byteps")),
    "--server-transport": (("tcp", "rdma"), ("--strategy", "byteps")),
    "--factors-every": (("1", "10"), ("--strategy", "k-fac")),
    "--host-copies": ((None, ""), ("--strategy", "ring")),
}
# A strategy that does not take the threshold.
NOT_TAKEN = {"--reshard-after-forward": "ring", "--theta": "ring", "--eta": "ring", "--group": "ring", "--segments": "ring", "--rings": "ring", "--servers": "ring",
             "--server-placement": "ring", "--streams": "parameter-server", "--cycle": "ring", "--horovod": "ring", "--partition": "ring",
             "--credit": "ring", "--server-machines": "ring", "--server-transport": "ring", "--factors-every": "ring",
             "--host-copies": "parameter-server"}
SCHEDULE = {
    "--group": (("2", "4"), ("hierarchical",)),
    "--segments": (("1", "4"), ("double-binary-tree",)),
    "--rings": (("1", "2"), ("multi-ring",)),
    "--servers": (("1", "2"), ("parameter-server",)),
}
SMALL = ("--model", "alexnet", "--cluster", "jizhi-p40")
PRICED = ("--node-price", "10 USD/h")
RUN = {
    "--iterations": (("100", "200"), ()),
    "--epochs": (("1", "2"), ("--dataset", "cifar-10")),
    "--dataset": (("cifar-10", "imagenet"), ("--epochs", "1")),
    "--evaluate": ((None, "50000"), ("--epochs", "1", "--dataset", "cifar-10")),
    "--checkpoint": ((None, "10s"), ("--epochs", "1", "--dataset", "cifar-10")),
    "--start-up": ((None, "5min"), ()),
    "--failures": ((None, "100h@1h"), ("--checkpoint", "10s@50 iterations")),
    "--spares": ((None, "2"), PRICED),
    "--node-price": ((None, "10 USD/h"), ()),
    "--node-power": ((None, "2 kW"), ()),
    "--samples": (("1000000", "2000000"), ()),
}
SAMPLED = {
    "--spread": (("normal:0.1", "normal:0.3"), ()),
    "--slow-rank": (("3=1.5", "3=2"), ()),
    "--seed": (("1", "2"), ("--spread", "normal:0.3")),
}
# Of each command: words that name a small job, and the options that it has beside those above.
COMMANDS = {
    "predict": ((*SMALL, "--ranks", "16", *FUSED), JOB | SAMPLED | {
        "--baseline": (("1", "8"), ()),
        "--slow-node": (("0=0.5", "0=0.25"), ()),
        "--backup": (("1", "2"), ("--spread", "normal:0.1")),
        "--iterations": (("50", "100"), ("--spread", "normal:0.1")),
        "--sensitivity": ((None, ""), ()),
        }),
    "scale": ((*SMALL, "--ranks", "8,16", *FUSED), JOB | {
        "--ranks": (("8", "16"), ()),
        "--baseline": (("1", "8"), ()),
        "--measured": (("8=1000images/s", "8=2000images/s"), ())}),
    "tune": ((*SMALL, "--ranks", "16", *FUSED, "--time-limit", "0 s"), JOB | {
        "--host-copies": (None, ()),  # a tuned plan does not go through the host
        # Buckets are tuned for one stage; layouts_test.py holds the search over layouts.
        "--pipeline": (None, ()), "--chunks": (None, ()), "--pipeline-schedule": (None, ()), "--layouts": (None, ()),
        "--all-reduce": (("ring", "halving-doubling"), ("--strategy", "ring")),
        "--runtime": (("ddp", "paceline"), ("--strategy", "all")),
        "--why": ((None, ""), ("--time-limit", "60 s", "--engine", "step")),
        "--robust": ((None, ""), ()),
        "--default": (("ring", "ddp"), ("--robust",)),
        "--spread": (("normal:0.1", "normal:0.3"), ("--robust",)),
        "--slow-rank": (("3=1.5", "3=2"), ("--robust",)),
        "--seed": (("1", "2"), ("--robust",))}),
    # Both orders of a stage's passes take the same time, and memory is not part of the answer.
    "cost": ((*SMALL, "--ranks", "16", *FUSED), JOB | RUN | {"--pipeline-schedule": (None, ())}),
    "plan-capacity": ((*SMALL, *FUSED), JOB | RUN | {
        "--nodes": (("1", "2"), ()),
        "--ranks": (("8", "16"), ()),
        "--accumulate": (("1", "2"), ()),
        "--global-batch": (("1024", "2048"), ()),
        "--within": ((None, "1h"), PRICED),
        "--budget": ((None, "100 USD"), PRICED),
        "--efficiency": ((None, "90%"), ()),
        "--cautious": ((None, ""), ("--samples", "51200", "--within", "9s", *PRICED))}),
    "show plan": ((*SMALL, "--ranks", "16", *FUSED), JOB | {
        "--pipeline-schedule": (None, ()),
        "--why": ((None, ""), ("--engine", "step"))}),
    "time": (("ring", "--cluster", "jizhi-p40", "--ranks", "16", "--size", "1MiB"), {
        "--ranks": (("8", "16"), ()),
        "--cluster": (("jizhi-p40", "goyal-p100"), ()),
        "--size": (("1MiB", "2MiB"), ()),
        "--factor": (("2", "4"), ("--size", "1KiB-1MiB")),
        "--collective": (("all-reduce", "all-gather"), ("nccl", "--cluster", "h200-ndr")),
        "--dtype": (("fp32", "fp16"), ()),
        "--placement": (("node-major", "round-robin"), ()),
        "--profile": ((None, "none"), ()),
        "--engine": (("step", "flow"), ("bidirectional-ring",)),
        "--nccl": (("2.20", "2.28"), ("nccl", "--cluster", "h200-ndr")),
        "--measured": ((None, "64KiB=150us,256MiB=40ms"), ())}),
    "verify": (("--schedule", "ring", "--ranks", "8"), {
        "--ranks": (("8", "16"), ()),
        "--schedule": (("ring", "halving-doubling"), ()),
        "--chunks": (("3", "8"), ())}),
    "show schedule": (("ring", "--ranks", "8"), {"--ranks": (("4", "8"), ())}),
    "export": (("ring", "--ranks", "8", "--format", "goal"), {
        "--ranks": (("4", "8"), ()),
        "--format": (("goal", "svg"), ()),
        "--size": (("1MiB", "2MiB"), ()),
        "--cluster": ((None, "jizhi-p40"), ())}),
}
NEEDED = {"cost": ("--iterations", "100"), "plan-capacity": ("--iterations", "100", "--nodes", "1-2")}
# Commands that name a schedule, and how.
OF_SCHEDULES = {"time": lambda name: (name,), "verify": lambda name: ("--schedule", name), "show schedule": lambda name: (name,), "export": lambda name: (name,)}


def options_of(command):
    """The options that the help of a command lists."""
    text = run(*command.split(), "--help-all").stdout
    return set(re.findall(r"^ +(?:-\w, ?)?(--[a-z][a-z-]*)", text, re.MULTILINE))


def without_echo(value):
    if isinstance(value, dict):
        return {key: without_echo(inner) for key, inner in value.items() if key not in ECHO}
    if isinstance(value, list):
        return [without_echo(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value  # without rounding


def pairs(words):
    """Words as (option, value) in their order; a word without an option is (None, word)."""
    found = []
    for word in words:
        if word.startswith("--"):
            found.append((word, None))
        elif found and found[-1][0] is not None and found[-1][1] is None:
            found[-1] = (found[-1][0], word)
        else:
            found.append((None, word))
    return found


def joined(*parts):
    """All words; of an option that is there twice, and of a word without an option, the last."""
    last = {}
    for part in parts:
        for option, value in pairs(part):
            last[option] = value
    words = [last.pop(None)] if None in last else []
    for option, value in last.items():
        words += [option] if value is None else [option, value]
    return words


def one_line(result, start):
    return result.returncode == 2 and result.stderr.count("\n") == 1 and result.stderr.startswith(f"paceline: {start}")


class Effects(CommandTest):
    def answer(self, command, words):
        """What a command computes, without what it repeats of the question."""
        if command in ("cost", "plan-capacity") and not {"--iterations", "--epochs", "--samples"} & set(words):
            words = [*words, "--iterations", "100"]
        if command == "plan-capacity" and not {"--nodes", "--ranks"} & set(words):
            words = [*words, "--nodes", "1-2"]
        form = () if command in ("show schedule", "export") else ("--json",)
        result = run(*command.split(), *words, *form)
        self.done(result)
        return without_echo(json.loads(result.stdout)) if form else result.stdout

    def differs(self, command, option, values, beside):
        """Whether the answers with two values of an option differ."""
        base = COMMANDS[command][0]
        answers = []
        for value in values:
            given = () if value is None else (option,) if value == "" else (option, value)
            answers.append(self.answer(command, joined(base, beside, given)))
        return answers[0] != answers[1]


def test_of(command):
    def test(self):
        base, probes = COMMANDS[command]
        known = set(probes) | (set(SCHEDULE) if command in OF_SCHEDULES else set())
        declared = options_of(command) - FORMS
        self.assertEqual(declared - known - ELSEWHERE.get(command, set()), set(), "options without a probe")
        for option in sorted(declared):
            values, beside = probes.get(option) or (None, ())
            if values is None:
                continue
            with self.subTest(option=option):
                self.assertTrue(self.differs(command, option, values, beside), "no value changes anything")
        if command not in OF_SCHEDULES:
            return
        for option, (values, (algorithm,)) in SCHEDULE.items():
            named = OF_SCHEDULES[command]
            with self.subTest(option=option):
                self.assertTrue(self.differs(command, option, values, named(algorithm)), "no value changes anything")
                self.assertTrue(one_line(run(*command.split(), *joined(base, named("ring"), (option, values[0]))), f"{option}: ring does not take it; "))
    return test


for name in COMMANDS:
    setattr(Effects, "test_options_of_" + name.replace(" ", "_").replace("-", "_"), test_of(name))


class NotTaken(CommandTest):
    def test_a_threshold_that_no_strategy_takes_is_refused(self):
        for command in ("predict", "scale", "tune", "cost", "plan-capacity", "show plan"):
            base = (*COMMANDS[command][0], *NEEDED.get(command, ()))
            for option, strategy in NOT_TAKEN.items():
                with self.subTest(command=command, option=option):
                    value = JOB[option][0][1]
                    result = run(*command.split(), *joined(base, ("--strategy", strategy), (option, value) if value else (option,)))
                    self.assertTrue(one_line(result, f"{option}: {strategy} does not take it; leave it out, or choose a strategy such as "), result.stderr)

    def test_tune_compares_with_others_in_any_case(self):
        result = run("tune", *SMALL, "--ranks", "16", "--others")
        self.assertTrue(one_line(result, "--others: the models of other systems are compared in any case; leave it out"), result.stderr)

    def test_a_threshold_that_some_take_is_noted(self):
        words = (*SMALL, "--ranks", "16", "--strategy", "ring,fused-ring,hierarchical", "--group", "8", "--theta", "1MiB")
        for command in ("predict", "scale", "tune", "show plan"):
            result = run(command, *words) if command != "show plan" else run("show", "plan", *words)
            text = self.done(result)
            self.assertIn("--group: taken by hierarchical\n", text)
            self.assertIn("--theta: not taken by ring\n", text)
            document = json.loads(self.done(run(*command.split(), *words, "--json")))
            self.assertEqual({part["option"]: part["taken_by"] for part in document["partly_taken"]},
                             {"--group": ["hierarchical"], "--theta": ["fused-ring", "hierarchical"]})


if __name__ == "__main__":
    unittest.main()
