"""The steps. Each takes the check and its limit in seconds, and returns what goes into the result:
`state` (passed, failed, skipped; incomplete where time did not suffice), `reason` where it is not passed, `commands`, and its figures.
"""
import json
import pathlib
import re
import time

from . import machine
from .gtest import read_report
from .processes import run_limited, tail

# What a short selection for the sanitizers is: programs, and tests of theirs that provoke no error.
SANITIZED = {
    "memcheck": {
        "paceline_cuda_contract_tests": "CudaKernel.RunsOnEveryElement:CudaKernel.SumsByPhases*:CudaKernel.ReadsWhat*",
        "paceline_cuda_device_tests": "CudaKernels.*-*TakeLargeArrays:*EveryHalf*",
        "paceline_cuda_network_tests": "CudaNetworkTest.*",
        "paceline_cudnn_network_tests": "CudnnNetworkTest.ComputesBranches*",
    },
    "racecheck": {
        "paceline_cuda_contract_tests": "CudaKernel.SumsByPhases*:CudaKernel.ReadsWhat*",
        "paceline_cuda_device_tests": "CudaLars.*:*CudaUpdate.HasTheBitsOfTheCpu/lars",
        "paceline_cuda_network_tests": "CudaNetworkTest.*",
    },
}
PRECISIONS = {"fp32": ("--precision", "fp32"), "mixed": ("--precision", "mixed", "--storage", "fp16")}
# Ours: several times what seeds make of it (experiments/convergence), and less than a wrong gradient does.
LARGEST_LOSS_OF_ACCURACY = 0.03
COMPARED_ITERATIONS = 20  # later losses drift apart by rounding alone
# By how much the sum of a network's layers and update may be off a whole iteration. Shorter ones are bound
# by launches, which a captured iteration does not have.
FAR_SUM = 0.05
SHORTEST_JUDGED_S = 10e-3
# What calibration is held against in a rehearsal: a device that the double's clock describes
# (tests/support/cuda_on_host/clock.h).
REHEARSED_CLOCK = ("host=1e-6; event=0.5e-6; bodies=0; copy host to device=10e-6+20e9; copy device to host=12e-6+22e9; "
                   "all-reduce=30e-6+40e9; send=12e-6+25e9; receive=12e-6+25e9; *=5e-6+1e12")


def state(problems, late=()):
    """Of a step with these problems, of which what is in `late` was stopped because its time was over."""
    if problems:
        return {"state": "failed", "reason": "; ".join(problems)}
    return {"state": "incomplete", "reason": "; ".join(late)} if late else {"state": "passed"}


def words(command):
    return " ".join(str(word) for word in command)


def look_at_machine(check, limit_s):
    """What machine this is, in the words of its own tools."""
    deadline = time.monotonic() + limit_s
    commands = [["uname", "-a"], ["cat", "/etc/os-release"], ["lscpu"]]
    commands += [[tool, *arguments] for name, arguments in (
        ("nvidia-smi", []), ("nvidia-smi", ["--query-gpu=name,driver_version,memory.total,compute_cap,clocks.max.sm,clocks.max.mem,"
                                            "power.limit,pcie.link.gen.current,pcie.link.width.current", "--format=csv"]),
        ("nvcc", ["--version"]), ("compute-sanitizer", ["--version"])) if (tool := machine.find_tool(name))]
    said = []
    for command in commands:
        ended = run_limited(command, max(1, min(15, deadline - time.monotonic())), check.plain_env)
        said.append({"command": words(command), "exit_code": ended.code, "output": tail(ended.out or ended.err or ended.problem, 6000)})
    versions = {"cuda_runtime": check.runtime.get("cudaRuntimeGetVersion", [0, None])[1],
                "cuda_driver": check.runtime.get("cudaDriverGetVersion", [0, None])[1], "nccl": None, "cudnn": None}
    libraries = {**machine.find_libraries(["libnccl.so.2", "libcudnn.so.9"]), **check.found}
    for key, name, function in (("nccl", "libnccl.so.2", "ncclGetVersion"), ("cudnn", "libcudnn.so.9", "cudnnGetVersion")):
        if name in libraries:
            versions[key] = machine.library_version(libraries[name], function, check.env)
    check.python, versions["pytorch"] = machine.ask_torch(check.plain_env, max(1, deadline - time.monotonic()))
    return {"state": "passed", "commands": [entry["command"] for entry in said], "output": said, "versions": versions,
            "libraries": {name: str(path) for name, path in libraries.items()},
            "driver_folder": str(check.driver_folder) if check.driver_folder else None}


def sanitize(check, limit_s):
    """compute-sanitizer over a short selection of tests."""
    tool = machine.find_tool("compute-sanitizer")
    if not tool:
        return {"state": "skipped", "reason": "there is no compute-sanitizer on this machine", "commands": []}
    deadline = time.monotonic() + limit_s
    jobs = [(kind, program, selection) for kind, programs in SANITIZED.items() for program, selection in programs.items()
            if program in check.manifest["programs"]]
    results, problems, late = [], [], []
    for i, (kind, program, selection) in enumerate(jobs):
        share = (deadline - time.monotonic()) / (len(jobs) - i)
        # Libraries provoke errors of the API, and swallow them.
        api_errors = ["--report-api-errors", "no"] if kind == "memcheck" else []
        command = [tool, "--tool", kind, *api_errors, "--error-exitcode", "99", "--print-limit", "20", check.bin / program,
                   "--gtest_filter=" + selection]
        ended = run_limited(command, share, check.env, check.scratch)
        report = read_report(ended.out)
        summary = re.findall(r"^=+ +((?:ERROR|RACECHECK) SUMMARY: .*)$", ended.out, re.MULTILINE)
        result = {"tool": kind, "program": program, "command": words(command), "exit_code": ended.code,
                  "seconds": round(ended.seconds, 2), "tests_passed": len(report.those("passed")), "tests_failed": len(report.those("failed")),
                  "summary": summary[-1] if summary else None}
        if ended.code != 0 or not summary or not report.those("passed"):
            said = [line for line in ended.out.splitlines() if line.startswith("=========")]
            result["problem"] = ended.problem or (f"ended with {ended.code}" if ended.code else "ran no test, or gave no summary")
            result["report"] = tail("\n".join(said[:200]) + "\n" + ended.err)
            (late if ended.code is None else problems).append(f"{kind} of {program}: {summary[-1] if summary else result['problem']}")
        results.append(result)
    return {**state(problems, late), "commands": [r["command"] for r in results], "runs": results}


def problems_of(ended):
    """Returns what is wrong with how a program ended, and what it had no time for."""
    if ended.code == 0:
        return [], []
    problem = ended.problem or f"ended with {ended.code}: {tail(ended.err, 600)}"
    return ([], [problem]) if ended.code is None else ([problem], [])


def run_benchmark(check, limit_s):
    """Kernels as a share of the bandwidth of a copy."""
    name = "cuda_kernels_benchmark"
    if name not in check.manifest["programs"]:
        return {"state": "skipped", "reason": f"{name} was not packed", "commands": []}
    command = [check.bin / name, "--benchmark_format=json", *(["--benchmark_filter=^Launch"] if check.quick else [])]
    ended = run_limited(command, limit_s, check.env, check.scratch)
    rows = read_benchmark(ended.out)
    kernels = [{"name": row["name"].split("/iterations")[0], "time": row.get("real_time"), "unit": row.get("time_unit"),
                "share_of_copy_bandwidth": row.get("share"), "GB_per_s": row.get("GB_per_s")} for row in rows]
    problems, late = problems_of(ended)
    problems += ["no kernel was timed"] if not kernels and not late else []
    return {**state(problems, late), "commands": [words(command)], "kernels": kernels}


def time_layers(check, limit_s):
    """Each layer of ResNet-50 by cuDNN, beside what memory and arithmetic take at least."""
    name = "cuda_network_benchmark"
    if name not in check.manifest["programs"]:
        return {"state": "skipped", "reason": f"{name} was not packed", "commands": []}
    if missing := check.missing(name):
        return {"state": "skipped", "reason": f"{', '.join(missing)} is not on this machine", "commands": []}
    command = [check.bin / name, *(["cnn-small", "4"] if check.quick else ["resnet50", "64"]), "fp16"]
    ended = run_limited(command, limit_s, check.env, check.scratch)
    said, *lines = ended.out.splitlines() or [""]
    keys = lines[0].split("\t") if lines else []
    layers = [dict(zip(keys, line.split("\t"))) for line in lines[1:]]
    problems, late = problems_of(ended)
    problems += ["no layer was timed"] if not problems and not late and not layers else []
    return {**state(problems, late), "commands": [words(command)], "seconds_of_program": round(ended.seconds, 2), "measured": said, "layers": layers}


def layers_by(check):
    """What computes layers in training: cuDNN where it was packed and is on the machine."""
    return "cudnn" if "paceline-cudnn.so" in check.manifest["programs"] and not check.missing("paceline-cudnn.so") else "own"


def without_command(check):
    """The outcome of a step that needs `paceline` and its module for CUDA, where they are not there; None where they are."""
    if "paceline" not in check.manifest["programs"] or "paceline-cuda.so" not in check.manifest["programs"]:
        return {"state": "skipped", "reason": "the command was not packed", "commands": []}
    if missing := check.missing("paceline-cuda.so"):
        return {"state": "failed", "reason": f"{missing[0]} is not on this machine", "commands": []}
    return None


def calibrate(check, limit_s):
    """Profiles of the device by `paceline calibrate --device cuda`, whole, and what their layers add up to."""
    if outcome := without_command(check):
        return outcome
    deadline = time.monotonic() + limit_s
    jobs = ([("cnn-small", "4", "fp32,mixed")] if check.quick else
            [("resnet50", "256", "mixed"), ("resnet50", "64", "mixed"), ("cnn-small,resnet-small", "64,256", "fp32,mixed"),
             ("alexnet", "128", "mixed")])
    sizes = ["--largest", "1 MiB", "--largest-all-reduce", "1 MiB"] if check.quick else []
    env = {**check.env, "CUDA_ON_HOST_CLOCK": REHEARSED_CLOCK} if check.rehearses else check.env
    runs, problems, late = [], [], []
    for i, (models, batches, precisions) in enumerate(jobs):
        share = max(2, (deadline - time.monotonic()) / (len(jobs) - i))
        out = check.scratch / f"profile-{i}.json"
        command = [check.bin / "paceline", "calibrate", "--device", "cuda", "--model", models, "--batch", batches, "--precision", precisions,
                   "--layers", layers_by(check), "--time", f"{max(1, share / 3):.0f} s", *sizes, "--out", out]
        ended = run_limited(command, share, env, check.scratch)
        run = {"command": words(command), "exit_code": ended.code, "seconds": round(ended.seconds, 2), "said": tail(ended.out, 8000)}
        if ended.code == 0:
            run["profile"] = json.loads(out.read_text())
            run["sums"] = [{**{key: entry[key] for key in ("network", "precision", "batch_per_rank")},
                            "iteration_s": entry["iteration_s"]["value"],
                            "difference": entry["sum_s"]["value"] / entry["iteration_s"]["value"] - 1}
                           for entry in run["profile"].get("checks", [])]
            problems += [f"the layers of {s['network']} at batch {s['batch_per_rank']}, {s['precision']} add up to {s['difference']:+.1%} off the iteration"
                         for s in run["sums"] if abs(s["difference"]) > FAR_SUM and s["iteration_s"] >= SHORTEST_JUDGED_S]
            if not run["sums"]:
                problems.append(f"{models}: no iteration was held against its layers")
        else:
            run["problem"] = ended.problem or f"ended with {ended.code}: {tail(ended.err, 600)}"
            (late if ended.code is None else problems).append(f"{models}: {run['problem']}")
        runs.append(run)
    return {**state(problems, late), "commands": [run["command"] for run in runs], "runs": runs}


def read_benchmark(text):
    """Returns the rows of Google Benchmark's JSON, also of one that was cut off."""
    for whole in (text, text[:text.rfind("}") + 1] + "]}"):
        try:
            return json.loads(whole)["benchmarks"]
        except (ValueError, KeyError):
            pass
    return []


def time_training(check, limit_s):
    """Images a second of ResNet-50, batch 256, in mixed precision: with CUDA graphs and without, and by PyTorch on the same GPU."""
    if outcome := without_command(check):
        return outcome
    deadline = time.monotonic() + limit_s
    job = ["cnn-small", "--batch", "4", "--stop-after", "3"] if check.quick else ["resnet50", "--batch", "256", "--stop-after", "60"]
    data = "synthetic" if check.quick else f"synthetic:{256 * 64}"  # one epoch, whose end is not reached
    runs, problems, late = [], [], []
    # The first of each storage makes its plans.
    cases = (("fp16", "on", 0.4), ("fp16", "off", 0.4), ("bf16", "on", 0.6))[:2 if check.quick else 3]
    for storage, graphs, share in cases:
        metrics = check.scratch / f"throughput-{storage}-{graphs}.jsonl"
        command = [check.bin / "paceline", "train", "--device", "cuda", "--ranks", "1", "--data", data, "--model", *job, "--precision", "mixed",
                   "--storage", storage, "--cuda-graphs", graphs, "--layers", layers_by(check), "--metrics", metrics]
        command += ["--layer-plans", check.scratch / "plans.json"] if layers_by(check) == "cudnn" else []
        ended = run_limited(command, max(1, share * (deadline - time.monotonic())), check.env, check.scratch)
        rates = [line["images_per_s"] for line in read_lines(metrics) if line.get("event") == "iteration"]
        last = sorted(rates[len(rates) // 2:])  # the first half warms up
        runs.append({"storage": storage, "cuda_graphs": graphs, "command": words(command), "exit_code": ended.code, "seconds": round(ended.seconds, 2),
                     "iterations": len(rates), "images_per_s": last[len(last) // 2] if last else None,
                     "all_images_per_s": [round(rate, 1) for rate in rates]})
        for found, into in zip(problems_of(ended), (problems, late)):
            into += [f"{storage}, graphs {graphs}: {problem}" for problem in found]
    peer = {}
    if check.python is None and not check.rehearses:  # its first import takes longer than `machine` has
        check.python, _ = machine.ask_torch(check.plain_env, max(1, (deadline - time.monotonic()) / 2))
    if check.python is not None and not check.rehearses and (left_s := deadline - time.monotonic()) > 5:
        command = [check.python, pathlib.Path(__file__).with_name("peer_case.py"), "resnet50", "256", "fp16", "bf16"]
        ended = run_limited(command, left_s, check.plain_env, check.scratch)
        peer = {"command": words(command), "exit_code": ended.code, "seconds": round(ended.seconds, 2), "cases": read_printed(ended.out)}
        for found, into in zip(problems_of(ended), (problems, late)):
            into += [f"PyTorch: {problem}" for problem in found]
    commands = [run["command"] for run in (*runs, peer) if run]
    return {**state(problems, late), "commands": commands, "runs": runs, "peer": peer or None}


def train(check, limit_s):
    """Convergence on Fashion-MNIST: the device beside the CPU, of one seed, in FP32 and mixed precision."""
    if "paceline" not in check.manifest["programs"] or not check.manifest["data"]:
        return {"state": "skipped", "reason": "the command or the data was not packed", "commands": []}
    deadline = time.monotonic() + limit_s
    length = ["--stop-after", "3"] if check.quick else ["--epochs", "1"]  # of half of the images
    networks = ("cnn-small",) if check.quick else ("cnn-small", "resnet-small")
    # The CPU's runs come last: they may take longer than is left.
    jobs = [(network, precision, device) for device in ("cuda", "cpu") for network in networks for precision in PRECISIONS]
    runs, problems, late = [], [], []
    for i, (network, precision, device) in enumerate(jobs):
        metrics = check.scratch / f"{network}-{precision}-{device}.jsonl"
        batch = "4" if check.quick else "64"
        command = [check.bin / "paceline", "train", "--model", network, "--data", check.folder / "data", "--device", device,
                   "--ranks", "1", "--batch", batch, "--seed", "1", *length, *PRECISIONS[precision], "--metrics", metrics]
        if device == "cuda":
            command += ["--layers", layers_by(check)]
            command += ["--layer-plans", check.scratch / "plans.json"] if layers_by(check) == "cudnn" else []
        missing = check.missing("paceline-cuda.so") if device == "cuda" else []
        if missing:
            problems.append(f"{network}, {precision}, {device}: {missing[0]} is not on this machine")
            continue
        share = (deadline - time.monotonic()) / (len(jobs) - i)
        ended = run_limited(command, max(1, share), check.env, check.scratch)
        lines = read_lines(metrics)
        losses = [line["loss"] for line in lines if line.get("event") == "iteration"]
        epochs = [line for line in lines if line.get("event") == "epoch"]
        run = {"network": network, "precision": precision, "asked_for": device, "command": words(command), "exit_code": ended.code,
               "seconds": round(ended.seconds, 2), "iterations": len(losses), "losses": losses,
               "start": lines[0] if lines else None, "epochs": epochs, "test_accuracy": epochs[-1].get("test_accuracy") if epochs else None}
        if ended.code != 0:
            run["problem"] = ended.problem or f"ended with {ended.code}: {tail(ended.err, 600)}"
            only_late = device == "cpu" and ended.code is None
            (late if only_late else problems).append(f"{network}, {precision}, {device}: {run['problem']}")
        runs.append(run)
    compared = compare_runs(runs)
    for pair in compared:
        on_gpu, on_cpu = pair["test_accuracy"]["cuda"], pair["test_accuracy"]["cpu"]
        if on_gpu is not None and on_cpu is not None and on_gpu < on_cpu - LARGEST_LOSS_OF_ACCURACY:
            problems.append(f"{pair['network']}, {pair['precision']}: test accuracy {on_gpu:.4f}, and {on_cpu:.4f} on the CPU")
    return {**state(problems, late), "commands": [run["command"] for run in runs], "compared": compared, "runs": runs}


def read_lines(file):
    return read_printed(file.read_text() if file.exists() else "")


def read_printed(text):
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # the last line of a run that was stopped
            pass
    return lines


def compare_runs(runs):
    compared = []
    for run in runs:
        peer = next((r for r in runs if r["asked_for"] == "cpu" and (r["network"], r["precision"]) == (run["network"], run["precision"])), None)
        if run["asked_for"] == "cpu" or peer is None:
            continue
        pairs = list(zip(run["losses"], peer["losses"]))[:COMPARED_ITERATIONS]
        compared.append({"network": run["network"], "precision": run["precision"], "first_iterations": len(pairs),
                         "largest_difference_of_loss": max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=None),
                         "test_accuracy": {"cuda": run["test_accuracy"], "cpu": peer["test_accuracy"]}})
    return compared


def run_peer(check, limit_s):
    """PyTorch on the same GPU, by the script that was packed."""
    script = check.folder / "peer_baseline.py"
    if not script.exists():
        return {"state": "skipped", "reason": "peer_baseline.py was not packed", "commands": []}
    if check.python is None:
        check.python, _ = machine.ask_torch(check.plain_env, min(90, limit_s / 3))
    if check.python is None:
        return {"state": "skipped", "reason": "no Python of this machine has PyTorch", "commands": []}
    file = check.scratch / "peer.json"
    # It begins no case in its last 60 s; a case may take longer, and then what it printed is kept.
    command = [check.python, script, file, "--seconds", f"{limit_s - 5:.0f}", *(["--quick"] if check.quick else [])]
    ended = run_limited(command, limit_s, check.plain_env, check.scratch)
    try:
        result = json.loads(file.read_text())
    except (OSError, ValueError):
        result = None
    problems, late = problems_of(ended)
    printed = [] if result and "throughput" in result else [line for line in ended.err.splitlines() if line.startswith("{")]
    return {**state(problems, late), "commands": [words(command)], "peer": result, "throughput_printed": printed}
