"""pack: programs of a build, their libraries and the data into a folder that travels."""
import gzip
import hashlib
import json
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

from .errors import CheckError

MANIFEST = "manifest.json"
PAYLOAD = "payload.tar.xz"
FORMAT = "paceline-gpu-check-folder-2"
MIB = 1 << 20
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")

# glibc belongs to the loader and to the driver's libraries of the machine, and later ones run what an
# earlier one has linked. So it never travels.
BASE = re.compile(r"(linux-vdso|ld-linux[\w-]*|lib(c|m|dl|pthread|rt|resolv|util))\.so(\.\d+)*$")
# The machine's own are as good or better, as long as it has any: these travel and come last.
FALLBACK = re.compile(r"lib(stdc\+\+|gcc_s)\.so")
# Too big to travel, and part of every machine that trains.
FOUND_THERE = re.compile(r"lib(nccl|cudnn\w*|cublas\w*|nvrtc[\w-]*|nvJitLink)\.so")
DOUBLES = ("paceline_cudart_double", "paceline_nccl_double", "paceline_cudnn_double")
WITH_CUDNN = ("paceline_cudnn_double",)  # which a build without cuDNN lacks
DRIVER = re.compile(r"lib(cuda|nvidia-ml)\.so")


def targets_of(build):
    """Returns the files of a build by their target: the command, all test programs of CUDA, the benchmark."""
    listing = build / "tests/cuda/CTestTestfile.cmake"
    if not listing.exists():
        raise CheckError(f"{build} is no build with CUDA and tests: cmake --preset release")
    programs = re.findall(r"add_test\(\[=\[(\w+)\.device\]=\]", listing.read_text())
    files = {"paceline": build / "paceline", "paceline_cuda_module": build / "paceline-cuda.so",
             "cuda_kernels_benchmark": build / "tests/benchmarks/cuda_kernels_benchmark"}
    if has_cudnn(build):
        files |= {"paceline_cudnn_module": build / "paceline-cudnn.so",
                  "cuda_network_benchmark": build / "tests/benchmarks/cuda_network_benchmark"}
    return {**files, **{name: build / "tests/cuda" / name for name in programs}}


def has_cudnn(build):
    return "paceline_cudnn_network_tests" in (build / "tests/cuda/CTestTestfile.cmake").read_text()


def pack(folder, build, peer, data, doubles, only, limit_mib, as_built):
    root = pathlib.Path(__file__).resolve().parents[3]
    files = targets_of(build)
    if only:
        if unknown := sorted(set(only) - set(files)):
            raise CheckError(f"there is no program {unknown[0]}; there are {', '.join(sorted(files))}")
        files = {name: files[name] for name in only}
    if not as_built:
        wanted = [name for name in DOUBLES if has_cudnn(build) or name not in WITH_CUDNN] if doubles else []
        build_targets(build, [*files, *wanted])
    require_built(build, files)
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise CheckError(f"{folder} is not empty and was not packed by this command: name another folder")
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as scratch:
        stage, made = pathlib.Path(scratch, "stage"), pathlib.Path(scratch, "made")
        made.mkdir()
        needs = stage_programs(stage, files, doubles_of(build) if doubles else [])
        archive = made / PAYLOAD
        with tarfile.open(archive, "w:xz") as tar:  # half of gzip's bytes, for a minute of one core
            tar.add(stage, arcname=".")
        shutil.copy(root / "experiments/gpu/check.py", made)
        shutil.copytree(root / "experiments/gpu/gpucheck", made / "gpucheck", ignore=shutil.ignore_patterns("__pycache__"))
        if peer:
            shutil.copyfile(peer, made / "peer_baseline.py")
        if data:
            copy_data(data, made / "data")
        manifest = {"format": FORMAT, **source_of(root), "packed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "packed_on": f"{platform.platform()}, {platform.libc_ver()[0]} {platform.libc_ver()[1]}",
                    "payload_sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "peer": bool(peer), "data": bool(data), "doubles": doubles,
                    "build": {**build_facts(build), "brought_up_to_date": not as_built}, "programs": needs}
        (made / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        if size > limit_mib * MIB:
            raise CheckError(f"the folder would have {size / MIB:.1f} MiB, and the limit is {limit_mib:g} MiB (--limit-mib)")
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(made, folder)
    print(f"{folder}: {size / MIB:.1f} MiB, {len(files)} programs, commit {manifest['commit'][:12]}"
          + (" with changes" if manifest["commit_has_changes"] else ""))


def build_targets(build, targets):
    said = subprocess.run(["cmake", "--build", str(build), "--target", *targets], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise CheckError(f"the build failed: cmake --build {build} --target {' '.join(targets)}")


def require_built(build, files):
    for name, file in files.items():
        if not file.exists():
            raise CheckError(f"{name} was not built: cmake --build {build} --target {name}")


def doubles_of(build):
    folder = build / "tests/support/cuda_on_host/lib"
    found = sorted(folder.glob("*.so.[0-9]*"))
    if not found:
        raise CheckError(f"the doubles were not built: there is none in {folder}")
    return found


def stage_programs(stage, files, doubles):
    """Copies programs and libraries without symbols; returns what each program needs of the machine."""
    for name in ("bin", "lib", "lib-last", "doubles"):
        (stage / name).mkdir(parents=True)
    needs = {}
    for name, file in files.items():
        strip(file, stage / "bin" / file.name)
        needs[file.name] = stage_libraries(stage, file)
    for file in doubles:
        strip(file, stage / "doubles" / file.name)
        stage_libraries(stage, file)
    return needs


def stage_libraries(stage, file):
    said = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise CheckError(f"ldd cannot read {file}: {said.stderr.strip().splitlines()[-1:]}")
    found_there = []
    for line in said.stdout.splitlines():
        name, _, place = line.strip().partition(" => ")
        name, place = pathlib.Path(name.split(" (")[0]).name, place.split(" (")[0]
        if BASE.match(name) or DRIVER.match(name):
            continue
        if FOUND_THERE.match(name):
            found_there.append(name)
            continue
        if not place.startswith("/"):
            raise CheckError(f"{file.name} needs {name}, which is not on this machine")
        if "cuda_on_host" in place:
            continue
        target = stage / ("lib-last" if FALLBACK.match(name) else "lib") / name
        if not target.exists():
            strip(pathlib.Path(place), target)
    return sorted(found_there)


def strip(file, target):
    shutil.copy(file.resolve(), target)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


def copy_data(data, target):
    """The first half of each file of Fashion-MNIST: all of it is 29 MiB, which no packer makes less."""
    target.mkdir()
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        file = data / f"{name}.gz"
        if not file.exists():
            raise CheckError(f"there is no {file}: apt install dataset-fashion-mnist, or say --data none")
        (target / file.name).write_bytes(gzip.compress(first_half(gzip.decompress(file.read_bytes())), mtime=0))


def first_half(idx):
    """Of a file in the IDX format: two zeros, a type, the number of dimensions, each size in four bytes, the numbers."""
    header = 4 + 4 * idx[3]
    count = int.from_bytes(idx[4:8], "big")
    each = (len(idx) - header) // count
    return idx[:4] + (count // 2).to_bytes(4, "big") + idx[8:header + count // 2 * each]


def source_of(root):
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False).stdout.strip()
    try:
        return {"commit": git("rev-parse", "HEAD") or "unknown", "commit_has_changes": bool(git("status", "--porcelain"))}
    except FileNotFoundError:
        return {"commit": "unknown", "commit_has_changes": False}


def build_facts(build):
    wanted = ("CMAKE_BUILD_TYPE", "PACELINE_SANITIZE", "CMAKE_CUDA_COMPILER")
    cache = (build / "CMakeCache.txt").read_text().splitlines()
    return {name: line.split("=", 1)[1] for line in cache for name in wanted if line.startswith(name + ":")}
