// libnccl-tuner-paceline.so: what NCCL looks up in a tuner plugin, for NCCL 2.22 and later. Nothing
// else is exported. Use: NCCL_TUNER_PLUGIN=.../libnccl-tuner-paceline.so and
// PACELINE_NCCL_TUNER_FILE=FILE (docs/exports.md).
#include "runtime/nccl_tuner/tuner.h"
#include "runtime/nccl_tuner/tuner_api.h"

namespace paceline::nccl_tuner {
namespace {

constexpr const char* plugin_name = "Paceline";

Tuner* tuner_of(void* context) {
  return static_cast<Tuner*>(context);
}

Result init(std::size_t ranks, std::size_t nodes, Logger log, void** context) {
  if (context != nullptr) *context = make_tuner(ranks, nodes, log, nullptr);
  return success;
}

Result init_v5(void** context, std::uint64_t /*communicator*/, std::size_t ranks, std::size_t nodes,
               Logger log, NvlDomainInfo* /*domains*/, Constants* constants) {
  if (context != nullptr) *context = make_tuner(ranks, nodes, log, constants);
  return success;
}

Result answer_v3(void* context, int function, std::size_t bytes, int /*pipelined*/, float** costs,
                 int cost_algorithms, int cost_protocols, int* channels) {
  decide(tuner_of(context), function, bytes, reinterpret_cast<float*>(costs), cost_algorithms,
         cost_protocols, channels);
  return success;
}

Result answer(void* context, int function, std::size_t bytes, int pipelined, float** costs,
              int cost_algorithms, int cost_protocols, int /*registered*/, int* channels) {
  return answer_v3(context, function, bytes, pipelined, costs, cost_algorithms, cost_protocols,
                   channels);
}

Result finish(void* context) {
  destroy(tuner_of(context));
  return success;
}

}  // namespace
}  // namespace paceline::nccl_tuner

#define PACELINE_EXPORTED extern "C" __attribute__((visibility("default"))) const

PACELINE_EXPORTED paceline::nccl_tuner::TunerV3 ncclTunerPlugin_v3;
PACELINE_EXPORTED paceline::nccl_tuner::TunerV4 ncclTunerPlugin_v4;
PACELINE_EXPORTED paceline::nccl_tuner::TunerV5 ncclTunerPlugin_v5;

const paceline::nccl_tuner::TunerV3 ncclTunerPlugin_v3 = {
    paceline::nccl_tuner::plugin_name, paceline::nccl_tuner::init, paceline::nccl_tuner::answer_v3,
    paceline::nccl_tuner::finish};
const paceline::nccl_tuner::TunerV4 ncclTunerPlugin_v4 = {
    paceline::nccl_tuner::plugin_name, paceline::nccl_tuner::init, paceline::nccl_tuner::answer,
    paceline::nccl_tuner::finish};
const paceline::nccl_tuner::TunerV5 ncclTunerPlugin_v5 = {
    paceline::nccl_tuner::plugin_name, paceline::nccl_tuner::init_v5, paceline::nccl_tuner::answer,
    paceline::nccl_tuner::finish};
