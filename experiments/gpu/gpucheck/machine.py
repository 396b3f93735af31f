"""What the machine has: libraries, tools, devices."""
import glob
import json
import os
import pathlib
import re
import shutil
import sys
import sysconfig

from .processes import run_limited, tail

COMPANIONS_OF_CUDNN = ("libnvrtc.so.13", "libnvrtc.so.12", "libcublasLt.so.13", "libcublasLt.so.12")

# Asks the runtime library of CUDA, in a process of its own, since a broken driver may hang.
ASK_RUNTIME = """
import ctypes, json, sys
runtime = ctypes.CDLL(sys.argv[1])
number = lambda name: (lambda n: (getattr(runtime, name)(ctypes.byref(n)), n.value))(ctypes.c_int(0))
said = {name: number(name) for name in ("cudaGetDeviceCount", "cudaDriverGetVersion", "cudaRuntimeGetVersion")}
runtime.cudaGetErrorName.restype = ctypes.c_char_p
said["error"] = runtime.cudaGetErrorName(said["cudaGetDeviceCount"][0]).decode()
properties = ctypes.create_string_buffer(1 << 16)  # begins with the name
if said["cudaGetDeviceCount"] != (0, 0) and said["cudaGetDeviceCount"][0] == 0:
    runtime.cudaGetDeviceProperties(properties, 0)
said["name"] = properties.value.decode(errors="replace")
print(json.dumps(said))
"""

ASK_TORCH = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "sees_a_gpu": cuda,
    "cudnn": torch.backends.cudnn.version() if cuda else None,
    "nccl": ".".join(map(str, torch.cuda.nccl.version())) if cuda else None}))
"""

ASK_LIBRARY = """
import ctypes, sys
library, function = ctypes.CDLL(sys.argv[1]), sys.argv[2]
version = ctypes.c_int(0)
if function == "ncclGetVersion":
    library.ncclGetVersion(ctypes.byref(version)); print(version.value)
else:
    getattr(library, function).restype = ctypes.c_size_t; print(getattr(library, function)())
"""


def toolkits():
    """Returns the folders of CUDA's toolkits: the user's, the usual ones, and that of the nvcc of the PATH."""
    nvcc = shutil.which("nvcc")
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True),
               "/opt/cuda", str(pathlib.Path(nvcc).resolve().parents[1]) if nvcc else None]
    return list(dict.fromkeys(filter(None, folders)))


def find_tool(name):
    folders = [f"{folder}/{place}" for folder in toolkits() for place in ("bin", "compute-sanitizer")]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join([*folders, "/usr/local/nvidia/bin"]))


def pythons():
    """Returns this Python, that of the PATH, and usual ones beside: PyTorch may be in any."""
    others = ("/opt/conda/bin/python3", *sorted(glob.glob("/opt/*/.venv/bin/python3")), *sorted(glob.glob("/opt/venv/bin/python3")))
    return list(dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), *(p for p in others if os.path.exists(p))))))


def library_folders():
    """Returns folders that may hold libraries of CUDA: the user's first, then the toolkits', then pip's."""
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    for toolkit in toolkits():
        yield from (f"{toolkit}/lib64", f"{toolkit}/lib", *sorted(glob.glob(f"{toolkit}/targets/*/lib")))
    packages = [path for path in (*sys.path, sysconfig.get_path("purelib")) if path]
    for python in pythons()[1:]:
        said = run_limited([python, "-c", "import sys; print('\\n'.join(sys.path))"], 20)
        packages += [line for line in said.out.splitlines() if line]
    for folder in dict.fromkeys(packages):
        yield from sorted(glob.glob(f"{folder}/nvidia/*/lib"))
    yield from ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


def driver_folders():
    """Returns folders that hold a libcuda.so.1: of drivers, and of toolkits, for drivers older than they are."""
    folders = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia",
               "/usr/lib/wsl/lib", "/run/opengl-driver/lib", *(f"{toolkit}/compat" for toolkit in toolkits())]
    return [folder for folder in folders if os.path.exists(f"{folder}/libcuda.so.1")]


def find_libraries(names):
    """Returns the path of each library that is somewhere on this machine."""
    found = {}
    for folder in library_folders():
        for name in names:
            path = pathlib.Path(folder, name)
            if name not in found and path.exists():
                found[name] = path
    return found


def ask_runtime(library, env):
    """Returns what CUDA's runtime says of the machine, or why it says nothing."""
    said = run_limited([sys.executable, "-c", ASK_RUNTIME, library], 60, env)
    try:
        return json.loads(said.out.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": said.problem or tail(said.err, 300).splitlines()[-1:] or "no answer"}


def has_device(runtime):
    error, count = runtime.get("cudaGetDeviceCount", (None, 0))
    return error == 0 and count > 0


def why_no_device(runtime):
    """Returns what CUDA's runtime said, and in words what it means where a driver is older than the runtime."""
    if runtime["error"] != "cudaErrorInsufficientDriver":
        return runtime["error"]
    driver, wanted = (runtime[name][1] for name in ("cudaDriverGetVersion", "cudaRuntimeGetVersion"))
    if driver == 0:
        return f"{runtime['error']}: there is no libcuda.so.1 that the loader finds"
    return f"{runtime['error']}: its driver knows CUDA up to {version_text(driver)}, and the programs want {version_text(wanted)}"


def version_text(version):  # 13000
    return f"{version // 1000}.{version % 1000 // 10}"


def ask_torch(env, limit_s):
    """Returns the first Python that has PyTorch, and PyTorch's versions."""
    for python in pythons():
        said = run_limited([python, "-c", ASK_TORCH], limit_s, env)
        if said.code == 0:
            return python, json.loads(said.out.splitlines()[-1])
    return None, None


def library_version(library, function, env):
    said = run_limited([sys.executable, "-c", ASK_LIBRARY, library, function], 20, env)
    return int(said.out) if said.code == 0 and re.fullmatch(r"\d+\s*", said.out) else said.problem or tail(said.err, 300)
