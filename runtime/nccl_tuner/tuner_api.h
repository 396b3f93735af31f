// The tuner plugin interface of NCCL, versions 3 to 5: what NCCL 2.22 and later look up in a library
// that NCCL_TUNER_PLUGIN names, and call. Written down from src/include/plugin/nccl_tuner.h and
// src/include/plugin/tuner/tuner_v3.h to tuner_v5.h of NVIDIA/nccl, tag v2.28.9-1 (NOTICE), for CUDA
// toolkits ship no such header. Names of types are ours, names of exported symbols are NCCL's.
//
//   NCCL             looks for version
//   2.22 and 2.23    3
//   2.24 to 2.27     4, then 3
//   2.28 and 2.29    5, then 4, then 3
//   2.30             6, then 5, ...
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::nccl_tuner {

using Result = int;
inline constexpr Result success = 0;  // ncclSuccess; any other ends the job

// ncclFunc_t. NCCL knows more; those have no rules.
inline constexpr int functions = 5;
inline constexpr const char* function_names[functions] = {"broadcast", "reduce", "allgather",
                                                          "reducescatter", "allreduce"};
inline constexpr int algorithms = 7;  // NCCL_NUM_ALGORITHMS
inline constexpr const char* algorithm_names[algorithms] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
inline constexpr int protocols = 3;  // NCCL_NUM_PROTOCOLS
inline constexpr const char* protocol_names[protocols] = {"ll", "ll128", "simple"};
inline constexpr int links = 3;  // NCCL_HW_*
inline constexpr const char* link_names[links] = {"nvlink", "pci", "net"};
inline constexpr int generations = 4;
inline constexpr const char* generation_names[generations] = {"volta", "ampere", "hopper",
                                                              "blackwell"};
inline constexpr int scales = 3;  // one node, two nodes, more nodes
inline constexpr const char* scale_names[scales] = {"1", "2", "4"};

// ncclDebugLogLevel and a subsystem.
inline constexpr int log_warning = 2;
inline constexpr int log_info = 3;
inline constexpr unsigned long log_tuning = 0x40;
using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct NvlDomainInfo {  // ncclNvlDomainInfo_v5_t
  int domains;
  int least_ranks;
  int most_ranks;
};

// ncclTunerConstants_v5_t: microseconds and GB/s (1e9 bytes).
struct Constants {
  double base_latencies[algorithms][protocols];
  double step_latencies[links][algorithms][protocols];
  double ll_most[generations][scales];
  double ring_ll128_most[generations][scales];  // of one channel, as those below
  double tree_ll128_most[generations][scales];
  double tree_most[generations][scales];
  double nvls_tree_most[generations][scales];
};
inline constexpr std::size_t constant_slots = 144;
static_assert(sizeof(Constants) == constant_slots * sizeof(double));

// `costs` is float[algorithms][protocols] in one piece, whatever its type says.
struct TunerV3 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                          float** costs, int algorithms, int protocols, int* channels);
  Result (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  Result (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Result (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                          float** costs, int algorithms, int protocols, int registered,
                          int* channels);
  Result (*destroy)(void* context);
};

struct TunerV5 {
  const char* name;
  Result (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes,
                 Logger log, NvlDomainInfo* domains, Constants* constants);
  Result (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                          float** costs, int algorithms, int protocols, int registered,
                          int* channels);
  Result (*finalize)(void* context);
};

}  // namespace paceline::nccl_tuner
