// Models of other systems, as strategies. Tests: tests/models/strategy_test.cc.
#include <array>

#include "models/plan/strategy.h"

namespace paceline::models {
namespace {

constexpr Bytes mebibyte{1024.0 * 1024};

// No tensor is this large: each stays whole.
constexpr std::int64_t whole = std::int64_t{1} << 62;

constexpr std::array catalogue = {
    Strategy{.name = "horovod",
             .summary = "every 5 ms: what is there, fused up to 64 MiB, by a ring or NCCL",
             .source = "Horovod 0.16.2 to 0.20, tensor-fusion.rst, operations.cc",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .leaves_choice = true,
             .other = OtherSystem{.system = System::horovod,
                                  .fusion = 64 * mebibyte,
                                  .dispatch = {.cycle = Seconds{5e-3},
                                               .negotiation = Negotiation::bits}}},
    Strategy{.name = "horovod-hierarchical",
             .summary = "Horovod's cycles; scattered in nodes, summed across, gathered in nodes",
             .source = "Horovod 0.16.2 to 0.20, HOROVOD_HIERARCHICAL_ALLREDUCE, nccl_operations.cc",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"hierarchical-scatter"},
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
             .all_reduce = Hybrid{.small = "double-binary-tree", .large = "ring"},
             .overlap = Overlap::priority,
             .other = OtherSystem{.system = System::byte_scheduler,
                                  .partition = Bytes{4e6},
                                  .dispatch = {.cycle = Seconds{5e-3},
                                               .negotiation = Negotiation::bits,
                                               .credit = Bytes{16e6}}}},
    Strategy{.name = "byteps",
             .summary = "summed in nodes, then parts of 4 MB in shares on one server a machine",
             .source = "Jiang 2020; bytedance/byteps f5df52f",
             .fusion = Fusion::never,
             .all_reduce = Served{},
             .other = OtherSystem{.system = System::byteps, .partition = Bytes{4'096'000}}},
    Strategy{.name = "tf-parameter-server",
             .summary = "summed on the CPU, each variable on the server with the fewest bytes",
             .source = "tensorflow/benchmarks 8fb7907, variable_mgr.py",
             .fusion = Fusion::never,
             .all_reduce = Served{whole, ServerPlacement::balanced},
             .other = OtherSystem{.system = System::tf_parameter_server,
                                  .transport = ServerTransport::grpc}},
    Strategy{.name = "tf-distributed-replicated",
             .summary = "summed in the worker, one push a variable, servers in turns",
             .source = "tensorflow/benchmarks 8fb7907, VariableMgrDistributedReplicated",
             .fusion = Fusion::never,
             .all_reduce = Served{whole, ServerPlacement::round_robin},
             .other = OtherSystem{.system = System::tf_distributed_replicated,
                                  .transport = ServerTransport::grpc}},
    Strategy{.name = "kvstore",
             .summary = "MXNet dist_sync: one push a key; from 1e6 elements on, all servers",
             .source = "Li 2014; apache/mxnet kvstore_dist.h; dmlc/ps-lite 15b8adf",
             .fusion = Fusion::never,
             .all_reduce = Served{1'000'000},
             .other = OtherSystem{.system = System::kvstore}},
    Strategy{.name = "p3",
             .summary = "MXNet dist_p3: slices of 40,000 parameters by priority",
             .source = "Jayarajan 2019; apache/mxnet p3store_dist.h",
             .fusion = Fusion::never,
             .all_reduce = Served{1'000'000},
             .overlap = Overlap::priority,
             .other = OtherSystem{.system = System::p3, .partition = Bytes{160e3}}},
    Strategy{
        .name = "ddp",
        .summary = "buckets of 25 MiB, the first of 1 MiB, by NCCL",
        .source = "PyTorch DistributedDataParallel, reducer.cpp",
        .fusion = Fusion::by_default,
        .all_reduce = Called{Library::nccl},
        .other =
            OtherSystem{.system = System::ddp, .fusion = 25 * mebibyte, .first_fusion = mebibyte}},
    Strategy{
        .name = "ddp-ring",
        .summary = "the same buckets by a ring, as Gloo sends them",
        .source = "PyTorch DistributedDataParallel, reducer.cpp; Gloo",
        .fusion = Fusion::by_default,
        .all_reduce = Scheduled{"ring"},
        .other =
            OtherSystem{.system = System::ddp, .fusion = 25 * mebibyte, .first_fusion = mebibyte}},
    Strategy{.name = "one-bucket",
             .summary = "all gradients together after the backward pass, by a ring or NCCL",
             .source = "NVIDIA Apex, DistributedDataParallel(delay_allreduce=True)",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .overlap = Overlap::none,
             .leaves_choice = true,
             .other = OtherSystem{.system = System::ddp}},
    Strategy{.name = "inductor",
             .summary = "buckets that saturate the bandwidth, of 50 MiB or more, by NCCL",
             .source = "PyTorch Inductor, fx_passes, pytorch#179935",
             .fusion = Fusion::by_default,
             .all_reduce = Called{Library::nccl},
             .other = OtherSystem{.system = System::inductor}},
    Strategy{.name = "mg-wfbp",
             .summary = "gradients merged where that saves more startup than waiting costs; a ring",
             .source = "Shi 2019, MG-WFBP, theorem 1",
             .fusion = Fusion::never,
             .all_reduce = Scheduled{"ring"},
             .other = OtherSystem{.system = System::mg_wfbp}},
    Strategy{.name = "nccl-2.4",
             .summary = "each tensor by NCCL 2.4: double binary trees up to eta, else a ring",
             .source = "NVIDIA NCCL 2.4, src/init.cc, ncclTreeThreshold",
             .fusion = Fusion::if_asked,
             .all_reduce = Hybrid{.small = "double-binary-tree", .large = "ring"},
             .other = OtherSystem{.system = System::nccl_2_4}},
};

constexpr std::array optimizers = {
    Strategy{.name = "k-fac",
             .summary = "second order: owners of layers sum, invert and precondition",
             .source = "Osawa 2019, arXiv 1811.12019; tyohei/chainerkfac",
             .fusion = Fusion::never,
             .all_reduce = Preconditioned{},
             .other = OtherSystem{.system = System::k_fac}},
};

}  // namespace

std::span<const Strategy> other_system_catalogue() {
  return catalogue;
}

std::span<const Strategy> optimizer_catalogue() {
  return optimizers;
}

}  // namespace paceline::models
