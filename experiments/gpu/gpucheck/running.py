"""run: the steps within the budget, and the result file."""
import hashlib
import json
import os
import pathlib
import platform
import shutil
import sys
import tarfile
import tempfile
import time

from . import checks, machine, testing
from .errors import CheckError
from .packing import FORMAT, MANIFEST, PAYLOAD
from .processes import run_limited

# In this order. A step's limit is its share of what is left, so that time that one does not need goes
# to those after it, and the last has ended with the budget.
STEPS = {
    "machine": (checks.look_at_machine, 4),
    "throughput": (checks.time_training, 60),
    "tests": (testing.run_tests, 30),
    "sanitizer": (checks.sanitize, 18),
    "benchmark": (checks.run_benchmark, 8),
    "layers": (checks.time_layers, 10),
    "calibration": (checks.calibrate, 20),
    "training": (checks.train, 20),
    "peer": (checks.run_peer, 24),
}
RESERVE_S = 10  # to unpack, to kill what hangs, to write


class Check:
    """What the steps share."""

    def __init__(self, args, manifest, scratch):
        self.folder, self.scratch, self.manifest = args.folder.resolve(), scratch, manifest
        self.quick, self.filter = args.quick, args.tests
        self.bin = scratch / "bin"
        self.python = None  # one that has PyTorch, once it is known
        self.plain_env = dict(os.environ)
        # What programs keep for later runs, such as kernels that the driver has compiled and cuDNN's plans,
        # serves the steps behind, and goes with the folder.
        (scratch / "cache/kernels").mkdir(parents=True)
        # A property is drawn a few times: each new network has plans of cuDNN that take a second to compile.
        self.own_env = {**self.plain_env, "CUDA_CACHE_PATH": str(scratch / "cache/kernels"), "XDG_CACHE_HOME": str(scratch / "cache"),
                        "RC_PARAMS": "max_success=5"}
        self.rehearses = bool(args.doubles)
        if self.rehearses:  # test programs take the doubles for a GPU, the only one unless the environment has more
            self.own_env = {"CUDA_ON_HOST_DEVICES": "1", **self.own_env, "CUDA_ON_HOST_UNSEEN": "1"}
        needed = sorted({name for names in manifest["programs"].values() for name in names})
        doubles = self.doubles_folder(args.doubles)
        self.found = machine.find_libraries(needed)
        if doubles:
            self.found.update({name: doubles / name for name in needed if (doubles / name).exists()})
        # cuDNN opens its compiler and cuBLAS by itself.
        companions = machine.find_libraries(machine.COMPANIONS_OF_CUDNN) if "libcudnn.so.9" in needed and not doubles else {}
        self.libraries = [*([doubles] if doubles else []), scratch / "lib", *(path.parent for path in (*self.found.values(), *companions.values()))]
        self.libraries += [pathlib.Path(p) for p in self.plain_env.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
        self.env = self.with_libraries(self.libraries)
        if not self.starts():
            self.libraries.append(scratch / "lib-last")
            self.env = self.with_libraries(self.libraries)
        self.runtime_library = (doubles or scratch / "lib") / "libcudart.so.13"
        self.runtime = machine.ask_runtime(self.runtime_library, self.env)
        self.driver_folder = None
        if not self.rehearses and not machine.has_device(self.runtime):
            self.find_driver()

    def find_driver(self):
        """Asks again with a driver's library that the loader does not find, or a toolkit's for older drivers."""
        for folder in machine.driver_folders():
            env = self.with_libraries([folder, *self.libraries])
            runtime = machine.ask_runtime(self.runtime_library, env)
            if machine.has_device(runtime):
                self.env, self.runtime, self.driver_folder = env, runtime, folder
                return

    def doubles_folder(self, asked):
        if not asked:
            return None
        folder = self.scratch / "doubles" if asked == "packed" else pathlib.Path(asked).resolve()
        if not (folder / "libcudart.so.13").exists():
            raise CheckError(f"there are no doubles in {asked}" if asked != "packed" else "no doubles were packed: pack --doubles")
        return folder

    def with_libraries(self, folders):
        return {**self.own_env, "LD_LIBRARY_PATH": os.pathsep.join(dict.fromkeys(str(folder) for folder in folders))}

    def starts(self):
        """A program starts that needs nothing but the base system and what travelled."""
        for name, needs in self.manifest["programs"].items():
            if not needs and not name.endswith(".so"):
                words = ["--gtest_list_tests"] if name.endswith("_tests") else ["--help"]
                return run_limited([self.bin / name, *words], 20, self.env).code == 0
        return True

    def missing(self, program):
        return [name for name in self.manifest["programs"].get(program, []) if name not in self.found]


def run(args):
    begin = time.monotonic()
    chosen = list(STEPS) if args.steps is None else args.steps.split(",")
    if unknown := [name for name in chosen if name not in STEPS]:
        raise CheckError(f"there is no step '{unknown[0]}': --steps takes {', '.join(STEPS)}")
    if args.budget < 30:
        raise CheckError("--budget: give 30 seconds or more")
    manifest = read_manifest(args.folder)
    if not args.output.resolve().parent.is_dir():
        raise CheckError(f"--output: there is no folder {args.output.resolve().parent}")
    scratch = folder_for_programs(args.folder)
    try:
        unpack(args.folder / PAYLOAD, manifest, scratch)
        check = Check(args, manifest, scratch)
        if not machine.has_device(check.runtime):
            raise CheckError(f"no CUDA device was found on this machine ({machine.why_no_device(check.runtime)}): nothing was checked")
        run_steps(check, args, chosen, begin)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def folder_for_programs(packed):
    """Makes a folder of which programs start: on some machines nothing in /tmp does."""
    for parent in (None, packed.resolve().parent, pathlib.Path.cwd()):
        try:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-gpu-check-", dir=parent))
        except OSError:
            continue
        program = folder / "starts"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
        if run_limited([program], 20).code == 0:
            program.unlink()
            return folder
        shutil.rmtree(folder, ignore_errors=True)
    raise CheckError("programs start neither in the folder of temporary files, nor beside the packed one, nor here: set TMPDIR to a folder where they do")


def read_manifest(folder):
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        raise CheckError(f"{folder} was not made by check.py pack: there is no readable {MANIFEST}") from None
    if manifest.get("format") != FORMAT:
        raise CheckError(f"{folder} was packed by another version of check.py: pack it again")
    return manifest


def unpack(archive, manifest, scratch):
    try:
        whole = hashlib.sha256(archive.read_bytes()).hexdigest() == manifest["payload_sha256"]
    except OSError as error:
        raise CheckError(f"{archive}: {error.strerror}") from None
    if not whole:
        raise CheckError(f"{archive} is not as it was packed: copy the folder again")
    try:
        tar = tarfile.open(archive)
    except tarfile.ReadError:
        raise CheckError("this Python cannot unpack xz: run check.py with another, such as /usr/bin/python3") from None
    with tar:
        tar.extractall(scratch, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def run_steps(check, args, chosen, begin):
    smi = machine.find_tool("nvidia-smi")
    said = run_limited([smi, "--query-gpu=driver_version", "--format=csv,noheader"], 15, check.plain_env) if smi else None
    driver = said.out.split("\n")[0].strip() if said and said.code == 0 else None
    provenance = {
        "kind": "rehearsed on doubles of CUDA's libraries, which says nothing of a GPU" if args.doubles else "measured",
        "device": check.runtime["name"], "devices": check.runtime["cudaGetDeviceCount"][1], "driver": driver,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": check.manifest["commit"], "commit_has_changes": check.manifest["commit_has_changes"],
    }
    result = {"format": "paceline-gpu-check-1", "complete": False, "provenance": provenance,
              "command": " ".join(sys.argv), "budget_s": args.budget, "quick": args.quick, "tests_chosen": args.tests,
              "host": {"platform": platform.platform(), "python": platform.python_version(), "processors": os.cpu_count()},
              "packed": check.manifest, "steps": []}
    end = begin + args.budget - RESERVE_S
    for i, name in enumerate(chosen):
        step, share = STEPS[name]
        limit_s = max(2.0, (end - time.monotonic()) * share / sum(STEPS[later][1] for later in chosen[i:]))
        started = time.monotonic()
        try:
            record = step(check, limit_s)
        except Exception as error:  # recorded, and the next step goes on
            record = {"state": "failed", "reason": f"{type(error).__name__}: {error}", "commands": []}
        seconds = time.monotonic() - started
        mark = {**provenance, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commands": record.pop("commands")}
        result["steps"].append({"step": name, "seconds": round(seconds, 2), "limit_s": round(limit_s, 1), **record, "provenance": mark})
        result["seconds"] = round(time.monotonic() - begin, 2)
        write_whole(args.output, result)
        print(f"{name:10} {record['state']:8} {seconds:6.1f} s of {limit_s:.0f}  {(record.get('reason') or record.get('said', ''))[:300]}", file=sys.stderr, flush=True)
    result["complete"] = True
    write_whole(args.output, result)


def write_whole(path, document):
    """The file is whole at all times."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(document, indent=1) + "\n")
    beside.replace(path)
