// What needs NCCL, in a build without it.
#include "runtime/probe/cuda/nccl_probe.h"
#include "runtime/probe/cuda/traffic.h"

namespace paceline::runtime::cuda {

std::string nccl_version() {
  return {};
}

std::unique_ptr<CollectiveProbe> make_nccl_probe(int /*ranks*/) {
  return nullptr;
}

std::unique_ptr<Traffic> make_nccl_traffic(int /*device*/, int /*ranks*/,
                                           std::size_t /*bucket_bytes*/) {
  return nullptr;
}

}  // namespace paceline::runtime::cuda
