// Tests: tests/cli/doctor_test.py.
#include "cli/doctor/probes.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <sstream>

#include "models/base/error.h"
#include "models/base/module.h"

namespace paceline::doctor {
namespace {

// A library that the loader finds under one of its names, or by its path.
class Library {
 public:
  Library(const char* what, std::initializer_list<std::string> names) {
    for (const std::string& name : names) {
      handle_ = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (handle_ != nullptr) return;
      if (const char* const said = ::dlerror(); why_.empty() && said != nullptr) why_ = said;
    }
    throw RunError(std::string("find ") + what, why_);
  }

  // A function of the library by its name.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) {
    void* const address = ::dlsym(handle_, name);
    if (address == nullptr) throw RunError(std::string("find ") + name, "the library lacks it");
    if (Dl_info info{}; ::dladdr(address, &info) != 0) where_ = info.dli_fname;
    return reinterpret_cast<Function*>(address);
  }

  // The file of the function that was found last, without links.
  [[nodiscard]] std::string where() const {
    std::error_code error;
    const auto path = std::filesystem::canonical(where_, error);
    return error ? where_ : path.string();
  }

 private:
  void* handle_ = nullptr;
  std::string why_;
  std::string where_;
};

std::string found(const std::string& version, const std::string& where) {
  return fmt::format("version={}\nwhere={}\n", version, where);
}

// "libcudart.so.13" where the loader finds it, and in the folders in which toolkits lie.
template <class Use>
std::string with_cuda_library(const char* what, std::initializer_list<const char*> names, Use use) {
  std::vector<std::string> folders = {""};
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const home = std::getenv(variable))
      folders.push_back(std::string(home) + "/lib64/");
  }
  folders.emplace_back("/usr/local/cuda/lib64/");
  std::string why;
  for (const std::string& folder : folders) {
    for (const char* const name : names) {
      try {
        Library library(what, {folder + name});
        return use(library);
      } catch (const RunError& error) {
        if (why.empty()) why = error.what();
      }
    }
  }
  throw RunError(std::string("find ") + what, "no " + std::string(*names.begin()) + " is there");
}

// What a program prints. Throws RunError if it fails.
std::string output_of(const std::string& command, const char* what) {
  std::FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) throw RunError(std::string("start ") + what, "no process");
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), got);
  if (::pclose(pipe) != 0) throw RunError(std::string("find ") + what, "it is not there");
  return text;
}

// The path of a program of PATH, or of one of these folders; empty if there is none.
std::string program(const std::string& name, std::initializer_list<const char*> folders) {
  std::vector<std::string> all(folders.begin(), folders.end());
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  std::vector<std::string> searched;
  for (std::string folder; std::getline(path, folder, ':');) searched.push_back(folder);
  searched.insert(searched.end(), all.begin(), all.end());
  for (const std::string& folder : searched) {
    std::string file = folder + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace

std::vector<std::string> values_of(const std::string& answer, std::string_view key) {
  std::vector<std::string> values;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=')
      values.push_back(line.substr(key.size() + 1));
  }
  return values;
}

std::string ask_mpi() {
  Library mpi("MPI", {"libmpi.so.40"});
  std::array<char, 8192> text{};
  int length = 0;
  mpi.function<int(char*, int*)>("MPI_Get_library_version")(text.data(), &length);
  const std::string version(text.data());
  const std::string launcher = program("mpirun", {});
  return found(version.substr(0, version.find_first_of(",\n")), mpi.where()) +
         (launcher.empty() ? "" : "launcher=" + launcher + "\n");
}

std::string ask_onednn() {
  struct Version {
    int major;
    int minor;
    int patch;
    const char* hash;
    unsigned cpu_runtime;
    unsigned gpu_runtime;
  };
  Library onednn("oneDNN", {"libdnnl.so.2", "libdnnl.so.3"});
  const Version* const v = onednn.function<const Version*()>("dnnl_version")();
  return found(fmt::format("{}.{}.{}", v->major, v->minor, v->patch), onednn.where());
}

std::string ask_simgrid() {
  Library simgrid("SimGrid", {"libsimgrid.so.3.32"});
  int major = 0;
  int minor = 0;
  int patch = 0;
  simgrid.function<void(int*, int*, int*)>("sg_version_get")(&major, &minor, &patch);
  return found(fmt::format("{}.{}.{}", major, minor, patch), simgrid.where());
}

std::string ask_sodium() {
  Library sodium("libsodium", {"libsodium.so.23"});
  const char* const version = sodium.function<const char*()>("sodium_version_string")();
  return found(version, sodium.where());
}

std::string ask_nvcc() {
  std::string nvcc;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const home = std::getenv(variable); nvcc.empty() && home != nullptr) {
      const std::string file = std::string(home) + "/bin/nvcc";
      if (::access(file.c_str(), X_OK) == 0) nvcc = file;
    }
  }
  if (nvcc.empty()) nvcc = program("nvcc", {"/usr/local/cuda/bin"});
  if (nvcc.empty()) throw RunError("find the CUDA toolkit", "no nvcc is there");
  const std::string text = output_of("'" + nvcc + "' --version", "nvcc");
  const std::size_t at = text.rfind(", V");
  if (at == std::string::npos) throw RunError("ask nvcc", "it says no version");
  return found(text.substr(at + 3, text.find_first_of(" \n", at + 3) - at - 3), nvcc);
}

std::string ask_cuda_runtime() {
  return with_cuda_library(
      "the CUDA runtime", {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
      [](Library& library) {
        int version = 0;
        const int error = library.function<int(int*)>("cudaRuntimeGetVersion")(&version);
        if (error != 0) throw RunError("ask the CUDA runtime", fmt::format("error {}", error));
        return found(fmt::format("{}.{}", version / 1000, version % 1000 / 10), library.where());
      });
}

std::string ask_nccl() {
  return with_cuda_library("NCCL", {"libnccl.so.2"}, [](Library& library) {
    int version = 0;
    const int error = library.function<int(int*)>("ncclGetVersion")(&version);
    if (error != 0) throw RunError("ask NCCL", fmt::format("error {}", error));
    return found(fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100),
                 library.where());
  });
}

std::string ask_cudnn() {
  return with_cuda_library("cuDNN", {"libcudnn.so.9", "libcudnn.so.8"}, [](Library& library) {
    const std::size_t version = library.function<std::size_t()>("cudnnGetVersion")();
    const bool is_new = version >= 90000;
    return found(is_new
                     ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
                     : fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100),
                 library.where());
  });
}

std::string ask_pytorch() {
  // Importing torch takes seconds; its version file says enough.
  constexpr const char* script =
      "import importlib.util as u, os, runpy; folder = "
      "os.path.dirname(u.find_spec(\"torch\").origin); "
      "v = runpy.run_path(os.path.join(folder, \"version.py\")); "
      "print(\"version=%s\\nwhere=%s\\ncuda=%s\" % (v[\"__version__\"], folder, v.get(\"cuda\") or "
      "\"none\"))";
  for (const char* const python : {"python3", "/usr/bin/python3"}) {
    try {
      std::string answer = output_of(fmt::format("{} -c '{}'", python, script), "PyTorch");
      if (!values_of(answer, "version").empty()) return answer;
    } catch (const RunError&) {
      continue;  // this Python has none
    }
  }
  throw RunError("find PyTorch", "python3 has no module torch");
}

std::string ask_driver() {
  struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
  };
  Library nvml("NVIDIA's driver", {"libnvidia-ml.so.1"});
  const int started = nvml.function<int()>("nvmlInit_v2")();
  if (started != 0) {
    const auto say = nvml.function<const char*(int)>("nvmlErrorString");
    throw RunError("ask NVIDIA's driver", say(started));
  }
  std::array<char, 256> text{};
  int cuda = 0;
  unsigned devices = 0;
  nvml.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion")(text.data(), 256);
  nvml.function<int(int*)>("nvmlSystemGetCudaDriverVersion_v2")(&cuda);
  nvml.function<int(unsigned*)>("nvmlDeviceGetCount_v2")(&devices);
  std::string answer =
      found(text.data(), nvml.where()) + fmt::format("cuda={}.{}\n", cuda / 1000, cuda % 1000 / 10);
  for (unsigned i = 0; i < devices; ++i) {
    void* device = nullptr;
    Memory memory{};
    int major = 0;
    int minor = 0;
    text.fill('\0');
    nvml.function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")(i, &device);
    nvml.function<int(void*, char*, unsigned)>("nvmlDeviceGetName")(device, text.data(), 256);
    nvml.function<int(void*, Memory*)>("nvmlDeviceGetMemoryInfo")(device, &memory);
    nvml.function<int(void*, int*, int*)>("nvmlDeviceGetCudaComputeCapability")(device, &major,
                                                                                &minor);
    answer += fmt::format("device={} {}.{} {}\n", memory.total, major, minor, text.data());
  }
  return answer;
}

std::string ask_module(std::string_view file) {
  static_cast<void>(
      load_module({.file = file, .what = "it", .remedy = "build with its libraries"}, {}));
  return {};
}

}  // namespace paceline::doctor
