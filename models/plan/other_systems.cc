// Models of other systems, as strategies. Tests: tests/models/strategy_test.cc.
#include <array>

#include "models/plan/strategy.h"

namespace paceline::models {
namespace {

constexpr Bytes mebibyte{1024.0 * 1024};

constexpr std::array catalogue = {
    Strategy{.name = "horovod",
             .summary = "every 5 ms: what is there, fused up to 64 MiB, by a ring",
             .source = "Horovod 0.16.2 to 0.20, tensor-fusion.rst, operations.cc",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .other = OtherSystem{.system = System::horovod,
                                  .fusion = 64 * mebibyte,
                                  .dispatch = {.cycle = Seconds{5e-3},
                                               .negotiation = Negotiation::bits}}},
    Strategy{.name = "mpi-host",
             .summary = "Horovod's cycles; buckets go through the host, one core of which sums",
             .source = "Horovod 0.9 to 0.13 without NCCL, mpi_ops.cc",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .other = OtherSystem{.system = System::horovod,
                                  .fusion = 64 * mebibyte,
                                  .dispatch = {.cycle = Seconds{5e-3},
                                               .negotiation = Negotiation::messages,
                                               .through_host = true}}},
    Strategy{.name = "byte-scheduler",
             .summary = "tensors in parts of 4 MB by priority, 16 MB on their way, over Horovod",
             .source = "Peng 2019; bytedance/byteps, branch bytescheduler, bytecore.py",
             .fusion = Fusion::never,
             .all_reduce = Scheduled{"ring"},
             .overlap = Overlap::priority,
             .other = OtherSystem{.system = System::byte_scheduler,
                                  .partition = Bytes{4e6},
                                  .dispatch = {.cycle = Seconds{5e-3},
                                               .negotiation = Negotiation::bits,
                                               .credit = Bytes{16e6}}}},
};

}  // namespace

std::span<const Strategy> other_system_catalogue() {
  return catalogue;
}

}  // namespace paceline::models
