// Each wait of a program of streams is taken out in turn, and the doubles see two operations that
// nothing orders: so the waits that the NCCL executor issues are needed, and the check would find one
// that it forgot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "models/collective/algorithms.h"
#include "runtime/collective/nccl/communicator.h"
#include "runtime/collective/stream_program.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "tests/cuda/nccl/nccl_job.h"

namespace paceline::runtime {
namespace {

using cuda_on_host::Order;
using test::Case;

// Runs the schedule as the executor does, without instruction `missing` on rank 1.
void run_without(const Case& c, std::optional<std::size_t> missing) {
  const int p = c.schedule.ranks();
  run_as_threads(p, 1, Seconds{20}, [&](const Endpoint& endpoint) {
    const int rank = endpoint.channel.rank();
    CudaDevice device(rank);
    const nccl::Communicator communicator(nccl::draw_unique_id(endpoint.channel), rank, p, rank,
                                          Seconds{20});
    StreamProgram program = compile_for_streams(c.schedule, rank, c.elements, c.type, 4);
    if (missing && rank == 1)
      program.instructions.erase(program.instructions.begin() +
                                 static_cast<std::ptrdiff_t>(*missing));
    const auto bytes = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * 4; };
    const Memory scratch = device.allocate(bytes(program.scratch_elements) + 1, MemoryKind::device);
    const Memory wide = device.allocate(bytes(program.wide_elements) + 1, MemoryKind::device);
    test::DeviceBucket bucket(device, test::bucket_of(c, rank), c.type);
    const std::unique_ptr<Stream> transfers = device.make_stream();
    const std::unique_ptr<Stream> sums = device.make_stream();
    const StreamArrays arrays{.bucket = bucket.view(),
                              .scratch = scratch.array(c.type),
                              .wide = wide.array(NumberType::fp32)};
    std::vector<Token> events(static_cast<std::size_t>(program.events));
    events.front() = bucket.ready();
    auto& stream = dynamic_cast<cuda::CudaStream&>(*transfers);
    const ncclDataType_t type = c.type == NumberType::fp32 ? ncclFloat32 : ncclFloat16;
    issue(program, arrays, {*transfers, *sums}, events, [&](const StreamProgram::Exchange& e) {
      nccl::Group group(communicator);
      for (const StreamProgram::Message& m : e.sends) {
        const ArrayView view = arrays.at(m.place);
        communicator.check(ncclSend(view.data, view.elements, type, m.peer, communicator.handle(),
                                    stream.handle()),
                           "send");
      }
      for (const StreamProgram::Message& m : e.receives) {
        const ArrayView view = arrays.at(m.place);
        communicator.check(ncclRecv(view.data, view.elements, type, m.peer, communicator.handle(),
                                    stream.handle()),
                           "receive");
      }
      group.end("all-reduce");
    });
    static_cast<void>(bucket.after(transfers->record()));
    wait_for(sums->record(), Seconds{20}, "add");  // that of nobody waited for, too
  });
}

TEST(NcclExecutorWaits, EachIsNeeded) {
  if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "is a property of the doubles";
  const Case cases[] = {
      {"ring", models::ring_all_reduce(3), 48, NumberType::fp32, 1},
      {"halving-doubling", models::halving_doubling_all_reduce(4), 32, NumberType::fp16, 2}};
  for (const Case& c : cases) {
    const StreamProgram program = compile_for_streams(c.schedule, 1, c.elements, c.type, 4);
    std::uint64_t seed = 0;
    int waits = 0;
    for (const Order order : {Order::eager, Order::latest, Order::random}) {
      test::begin(order, ++seed);
      run_without(c, std::nullopt);
      test::expect_clean();
      for (std::size_t i = 0; i < program.instructions.size(); ++i) {
        if (!std::holds_alternative<StreamProgram::Wait>(program.instructions[i])) continue;
        test::begin(order, ++seed);
        run_without(c, i);
        EXPECT_THAT(cuda_on_host::races(), testing::Not(testing::IsEmpty()))
            << c.name << " without instruction " << i;
        ++waits;
      }
    }
    EXPECT_GE(waits, 18) << c.name;
  }
}

}  // namespace
}  // namespace paceline::runtime
