// Loads a tuner plugin and asks it as NCCL does, by the structs of every version. They are written
// down here once more, in the words of NCCL's headers and apart from ours: what the two must agree
// in is the layout in memory.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace paceline::test {

using ncclResult_t = int;
using ncclDebugLogger_t = void (*)(int level, unsigned long flags, const char* file, int line,
                                   const char* format, ...);
struct ncclNvlDomainInfo_v5_t {
  int nNvlDomains, minRanksPerNvlDomain, maxRanksPerNvlDomain;
};
struct ncclTunerConstants_v5_t {
  double baseLatencies[7][3];
  double hwLatencies[3][7][3];
  double llMaxBws[4][3];
  double perChMaxRingLL128Bws[4][3], perChMaxTreeLL128Bws[4][3], perChMaxTreeBws[4][3],
      perChMaxNVLSTreeBws[4][3];
};
static_assert(sizeof(ncclTunerConstants_v5_t) == 1152);
struct ncclTuner_v5_t {
  const char* name;
  ncclResult_t (*init)(void** ctx, std::uint64_t commId, std::size_t nRanks, std::size_t nNodes,
                       ncclDebugLogger_t log, ncclNvlDomainInfo_v5_t* nvl,
                       ncclTunerConstants_v5_t* constants);
  ncclResult_t (*getCollInfo)(void* ctx, int f, std::size_t nBytes, int numPipeOps,
                              float** costTable, int numAlgo, int numProto, int regBuff,
                              int* nChannels);
  ncclResult_t (*finalize)(void* ctx);
};
struct ncclTuner_v4_t {
  const char* name;
  ncclResult_t (*init)(std::size_t nRanks, std::size_t nNodes, ncclDebugLogger_t log, void** ctx);
  ncclResult_t (*getCollInfo)(void* ctx, int f, std::size_t nBytes, int numPipeOps,
                              float** costTable, int numAlgo, int numProto, int regBuff,
                              int* nChannels);
  ncclResult_t (*destroy)(void* ctx);
};
struct ncclTuner_v3_t {
  const char* name;
  ncclResult_t (*init)(std::size_t nRanks, std::size_t nNodes, ncclDebugLogger_t log, void** ctx);
  ncclResult_t (*getCollInfo)(void* ctx, int f, std::size_t nBytes, int numPipeOps,
                              float** costTable, int numAlgo, int numProto, int* nChannels);
  ncclResult_t (*destroy)(void* ctx);
};

// NCCL's table of costs, and its answer from it.
struct NcclCosts {
  std::array<std::array<float, 3>, 7> us{};
  int channels = 0;

  // NCCL's choice: the least cost that is not negative.
  [[nodiscard]] std::pair<int, int> choice() const {
    std::pair<int, int> best{-1, -1};
    float least = 0;
    for (int a = 0; a < 7; ++a) {
      for (int p = 0; p < 3; ++p) {
        const float cost = us[static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
        if (cost < 0 || (best.first >= 0 && cost >= least)) continue;
        least = cost;
        best = {a, p};
      }
    }
    return best;
  }
};

class NcclTunerHost {
 public:
  // Throws std::runtime_error if the plugin or the version is not there.
  NcclTunerHost(const std::string& path, int version) : version_(version) {
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    const std::string symbol = "ncclTunerPlugin_v" + std::to_string(version);
    symbol_ = dlsym(library_, symbol.c_str());
    if (symbol_ == nullptr) throw std::runtime_error("no " + symbol);
  }
  NcclTunerHost(const NcclTunerHost&) = delete;
  NcclTunerHost& operator=(const NcclTunerHost&) = delete;
  ~NcclTunerHost() { dlclose(library_); }

  [[nodiscard]] void* init(std::size_t ranks, std::size_t nodes, bool with_log = true) {
    void* context = nullptr;
    ncclDebugLogger_t logger = with_log ? &log : nullptr;
    const ncclResult_t result =
        version_ == 5   ? v5()->init(&context, 0x1234, ranks, nodes, logger, &domains_, &constants)
        : version_ == 4 ? v4()->init(ranks, nodes, logger, &context)
                        : v3()->init(ranks, nodes, logger, &context);
    if (result != 0) throw std::runtime_error("init failed, which ends the job");
    return context;
  }
  void ask(void* context, int function, std::size_t bytes, NcclCosts& costs, int algorithms = 7,
           int protocols = 3, int registered = 0) const {
    auto** table = reinterpret_cast<float**>(costs.us.data());
    const ncclResult_t result =
        version_ == 5 ? v5()->getCollInfo(context, function, bytes, 1, table, algorithms, protocols,
                                          registered, &costs.channels)
        : version_ == 4 ? v4()->getCollInfo(context, function, bytes, 1, table, algorithms,
                                            protocols, registered, &costs.channels)
                        : v3()->getCollInfo(context, function, bytes, 1, table, algorithms,
                                            protocols, &costs.channels);
    if (result != 0) throw std::runtime_error("getCollInfo failed, which ends the job");
  }
  void finish(void* context) {
    const ncclResult_t result = version_ == 5   ? v5()->finalize(context)
                                : version_ == 4 ? v4()->destroy(context)
                                                : v3()->destroy(context);
    if (result != 0) throw std::runtime_error("the end failed");
  }

  [[nodiscard]] const char* name() const { return *static_cast<const char* const*>(symbol_); }
  [[nodiscard]] bool has(const char* symbol) const { return dlsym(library_, symbol) != nullptr; }

  ncclTunerConstants_v5_t constants{};

  // The lines of NCCL's log since the last call.
  static std::vector<std::string> take_log() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  const ncclTuner_v5_t* v5() const { return static_cast<const ncclTuner_v5_t*>(symbol_); }
  const ncclTuner_v4_t* v4() const { return static_cast<const ncclTuner_v4_t*>(symbol_); }
  const ncclTuner_v3_t* v3() const { return static_cast<const ncclTuner_v3_t*>(symbol_); }

  __attribute__((format(printf, 5, 6))) static void log(int level, unsigned long flags,
                                                        const char* /*file*/, int /*line*/,
                                                        const char* format, ...) {
    char text[2048];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    const std::lock_guard lock(mutex_);
    lines_.push_back((level == 2 ? "WARN " : level == 3 ? "INFO " : "? ") + std::string(text));
    if (flags != 0x40) lines_.back() = "another subsystem: " + lines_.back();
  }

  inline static std::mutex mutex_;
  inline static std::vector<std::string> lines_;
  int version_;
  void* library_ = nullptr;
  void* symbol_ = nullptr;
  ncclNvlDomainInfo_v5_t domains_{1, 8, 8};
};

}  // namespace paceline::test
