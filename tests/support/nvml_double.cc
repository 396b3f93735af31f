// A double of NVML for the tests of `paceline doctor`. NVML_DOUBLE says how it behaves: two GPUs
// (the default), "not-loaded", "hang" or "crash". A line with its path is added to the file of
// PACELINE_LOADED when it is loaded, so that a copy under another name tells who loads that.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int driver_not_loaded = 9;
constexpr int not_found = 6;

std::string behaviour() {
  const char* const text = std::getenv("NVML_DOUBLE");
  return text == nullptr ? "" : text;
}

struct Loaded {
  Loaded() {
    Dl_info info{};
    const char* const path = std::getenv("PACELINE_LOADED");
    if (path == nullptr || dladdr(reinterpret_cast<void*>(&not_found_as_text), &info) == 0) return;
    if (std::FILE* const file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", info.dli_fname);
      std::fclose(file);
    }
  }
  static const char* not_found_as_text() { return "Not Found"; }
};
const Loaded loaded;

int copy_text(const char* text, char* to, unsigned length) {
  std::snprintf(to, length, "%s", text);
  return 0;
}

}  // namespace

extern "C" {
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int nvmlInit_v2() {
  if (behaviour() == "hang") ::sleep(10'000);
  if (behaviour() == "crash") std::abort();
  return behaviour() == "not-loaded" ? driver_not_loaded : 0;
}
const char* nvmlErrorString(int error) {
  return error == driver_not_loaded ? "Driver Not Loaded" : "Not Found";
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return copy_text("580.65.06", version, length);
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int devices[2];
  if (index > 1) return not_found;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  return copy_text("NVIDIA H100 80GB HBM3", name, length);
}
int nvmlDeviceGetMemoryInfo(void*, NvmlMemory* memory) {
  *memory = {85'520'809'984, 85'000'000'000, 520'809'984};
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
}
