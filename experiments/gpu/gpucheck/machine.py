"""What the machine has: libraries, tools, devices."""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from .processes import run_limited, tail

TOOLKIT_FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin", "/usr/local/nvidia/bin")

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


def find_tool(name):
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(TOOLKIT_FOLDERS))


def pythons():
    """Returns this Python and that of the PATH: PyTorch may be in either."""
    return list(dict.fromkeys(filter(None, (sys.executable, shutil.which("python3")))))


def library_folders():
    """Returns folders that may hold libraries of CUDA: the user's first, then the toolkit's, then pip's."""
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    yield from ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/opt/cuda/lib64")
    yield from sorted(glob.glob("/usr/local/cuda-*/lib64")) + sorted(glob.glob("/usr/local/cuda-*/targets/*/lib"))
    packages = [path for path in (*sys.path, sysconfig.get_path("purelib")) if path]
    for python in pythons()[1:]:
        try:
            said = subprocess.run([python, "-c", "import sys; print('\\n'.join(sys.path))"],
                                  capture_output=True, text=True, timeout=20, check=False)
            packages += [line for line in said.stdout.splitlines() if line]
        except (OSError, subprocess.TimeoutExpired):
            pass
    for folder in dict.fromkeys(packages):
        yield from sorted(glob.glob(f"{folder}/nvidia/*/lib"))
    yield from ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


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
