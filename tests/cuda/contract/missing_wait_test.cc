// Every wait that a program needs: without it the double reports a race, in every order of the
// scheduler and under each of 50 seeds, and with it none. On a GPU the programs run with all waits.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t n = 64;

// The waits of a program, in the order in which it comes to them; one may be left out.
class Waits {
 public:
  explicit Waits(int without) : without_(without) {}
  [[nodiscard]] bool next() { return count_++ != without_; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] bool all() const { return without_ < 0; }

  // Returns an event of all that the stream has up to now.
  cudaEvent_t record(cudaStream_t stream) {
    events_.push_back(std::make_unique<Event>());
    EXPECT_OK(cudaEventRecord(*events_.back(), stream));
    return *events_.back();
  }
  void wait_for(cudaStream_t later, cudaEvent_t event) {
    if (next()) EXPECT_OK(cudaStreamWaitEvent(later, event, 0));
  }
  // `later` waits for all that `earlier` has up to now.
  void wait(cudaStream_t later, cudaStream_t earlier) { wait_for(later, record(earlier)); }

 private:
  int without_;
  int count_ = 0;
  std::vector<std::unique_ptr<Event>> events_;
};

struct Scenario {
  std::string name;
  // Runs the program, and checks its results if all waits are there.
  std::function<void(Waits&)> run;
};
void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

void read_after_write(Waits& waits) {
  const Stream first, second;
  const Floats a(n), b(n);
  EXPECT_OK(start_fill(second, b, 1, n));
  EXPECT_OK(start_fill(first, a, 2, n));
  waits.wait(second, first);
  EXPECT_OK(start_combine(second, b, a, 1, 1, 0, n));
  if (waits.all()) EXPECT_THAT(fetch(b, n, second), Each(3.F));
}

void write_after_read(Waits& waits) {
  const Stream first, second;
  const Floats a(n), b(n);
  EXPECT_OK(start_fill(first, a, 2, n));
  EXPECT_OK(start_fill(first, b, 1, n));
  EXPECT_OK(cudaStreamSynchronize(first));
  EXPECT_OK(start_combine(first, b, a, 1, 1, 0, n));
  waits.wait(second, first);
  EXPECT_OK(start_fill(second, a, 9, n));
  if (!waits.all()) return;
  EXPECT_OK(cudaStreamSynchronize(second));
  EXPECT_THAT(fetch(b, n, first), Each(3.F));
}

void write_after_write(Waits& waits) {
  const Stream first, second;
  const Floats a(n);
  EXPECT_OK(start_fill(first, a, 2, n));
  waits.wait(second, first);
  EXPECT_OK(cudaMemsetAsync(a, 0, n * sizeof(float), second));
  if (waits.all()) EXPECT_THAT(fetch(a, n, second), Each(0.F));
}

// One element is enough for a race.
void overlap_of_one_element(Waits& waits) {
  const Stream first, second;
  const Floats a(n);
  EXPECT_OK(start_fill(first, a, 2, n / 2));
  waits.wait(second, first);
  EXPECT_OK(start_fill(second, a + n / 2 - 1, 3, n / 2 + 1));
  if (!waits.all()) return;
  const std::vector<float> result = fetch(a, n, second);
  EXPECT_THAT(std::vector<float>(result.begin(), result.begin() + n / 2 - 1), Each(2.F));
  EXPECT_EQ(result[n / 2 - 1], 3);
}

void chain_of_four_streams(Waits& waits) {
  const std::array<Stream, 4> streams;
  const Floats a(n);
  EXPECT_OK(start_fill(streams[0], a, 1, n));
  for (std::size_t i = 1; i < streams.size(); ++i) {
    waits.wait(streams[i], streams[i - 1]);
    EXPECT_OK(start_combine(streams[i], a, a, 1, 1, 0, n));
  }
  if (waits.all()) EXPECT_THAT(fetch(a, n, streams[3]), Each(8.F));
}

void fork_and_join(Waits& waits) {
  const std::array<Stream, 4> streams;
  const Floats a(4 * n);
  EXPECT_OK(start_fill(streams[0], a, 1, 4 * n));
  for (std::size_t i = 1; i < streams.size(); ++i) {
    waits.wait(streams[i], streams[0]);
    EXPECT_OK(start_combine(streams[i], a + i * n, a, 1, 1, 0, n));
  }
  for (std::size_t i = 1; i < streams.size(); ++i) waits.wait(streams[0], streams[i]);
  EXPECT_OK(start_combine(streams[0], a, a, 0, 10, 0, 4 * n));
  if (!waits.all()) return;
  const std::vector<float> result = fetch(a, 4 * n, streams[0]);
  for (std::size_t i = 0; i < 4 * n; ++i) EXPECT_EQ(result[i], i < n ? 10 : 20) << i;
}

// Input that travels by two buffers, beside computation.
void double_buffer(Waits& waits) {
  constexpr int rounds = 5;
  const Stream copies, computes;
  const PinnedFloats host(rounds * n);
  for (std::size_t i = 0; i < rounds * n; ++i) host[i] = static_cast<float>(i / n + 1);
  const Floats a(n), b(n), sum(n);
  EXPECT_OK(start_fill(computes, sum, 0, n));
  const std::array<float*, 2> buffers = {a, b};
  std::array<cudaEvent_t, rounds> has_read = {};
  for (std::size_t i = 0; i < rounds; ++i) {
    if (i >= 2) waits.wait_for(copies, has_read[i - 2]);
    EXPECT_OK(cudaMemcpyAsync(buffers[i % 2], host + i * n, n * sizeof(float),
                              cudaMemcpyHostToDevice, copies));
    waits.wait(computes, copies);  // the buffer has arrived
    EXPECT_OK(start_combine(computes, sum, buffers[i % 2], 1, 1, 0, n));
    has_read[i] = waits.record(computes);
  }
  if (waits.all()) EXPECT_THAT(fetch(sum, n, computes), Each(15.F));
  EXPECT_OK(cudaStreamSynchronize(copies));
}

// A graph between other work, and a wait between two branches inside of it.
void through_a_graph(Waits& waits) {
  const Stream main, branch, other;
  const Floats a(n), b(n), c(n), d(n);
  EXPECT_OK(start_fill(main, b, 0, n));
  EXPECT_OK(start_fill(main, c, 0, n));
  EXPECT_OK(cudaStreamSynchronize(main));
  const Event forked, joined, written;
  EXPECT_OK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
  EXPECT_OK(start_fill(main, d, 0, n));  // before the fork
  EXPECT_OK(cudaEventRecord(forked, main));
  EXPECT_OK(cudaStreamWaitEvent(branch, forked, 0));
  EXPECT_OK(start_combine(branch, b, a, 1, 1, 0, n));  // b += a
  EXPECT_OK(cudaEventRecord(written, branch));
  if (waits.next()) EXPECT_OK(cudaStreamWaitEvent(main, written, 0));
  EXPECT_OK(start_combine(main, c, b, 1, 1, 0, n));  // c += b
  EXPECT_OK(cudaEventRecord(joined, branch));
  EXPECT_OK(cudaStreamWaitEvent(main, joined, 0));
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaStreamEndCapture(main, &graph));
  cudaGraphExec_t executable = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  for (int launch = 0; launch < 3; ++launch) {
    if (launch > 0) waits.wait(other, main);  // the graph has read a
    EXPECT_OK(start_fill(other, a, static_cast<float>(launch + 1), n));
    waits.wait(main, other);
    EXPECT_OK(cudaGraphLaunch(executable, main));
  }
  waits.wait(other, main);
  if (waits.all()) {
    EXPECT_THAT(fetch(b, n, other), Each(6.F));  // 1 + 2 + 3
    EXPECT_THAT(fetch(c, n, other), Each(1.F + 3 + 6));
  } else {
    EXPECT_OK(start_combine(other, c, b, 1, 1, 0, n));
  }
  EXPECT_OK(cudaStreamSynchronize(main));
  EXPECT_OK(cudaGraphExecDestroy(executable));
}

// The second record is what counts.
void event_recorded_again(Waits& waits) {
  const Stream first, second;
  const Floats a(n), b(n);
  const Event event;
  EXPECT_OK(start_fill(first, a, 1, n));
  EXPECT_OK(cudaEventRecord(event, first));
  EXPECT_OK(start_fill(first, b, 2, n));
  if (waits.next()) EXPECT_OK(cudaEventRecord(event, first));
  EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
  EXPECT_OK(start_combine(second, b, a, 1, 1, 0, n));
  if (waits.all()) EXPECT_THAT(fetch(b, n, second), Each(3.F));
}

// The legacy stream waits for blocking streams only.
void legacy_and_non_blocking(Waits& waits) {
  const Stream blocking(cudaStreamDefault), free_one;
  const Floats a(n), b(n);
  EXPECT_OK(start_fill(blocking, a, 1, n));
  EXPECT_OK(start_combine(nullptr, a, a, 1, 1, 0, n));
  waits.wait(free_one, nullptr);
  EXPECT_OK(start_combine(free_one, a, a, 1, 1, 0, n));
  if (waits.next()) EXPECT_OK(cudaStreamSynchronize(free_one));
  EXPECT_OK(start_combine(blocking, a, a, 1, 1, 0, n));
  if (waits.all()) EXPECT_THAT(fetch(a, n, blocking), Each(8.F));
}

// The host writes a pinned buffer that a copy may still read.
void host_writes_too_early(Waits& waits) {
  const Stream stream;
  const Floats a(n);
  const PinnedFloats host(n);
  for (std::size_t i = 0; i < n; ++i) host[i] = 1;
  EXPECT_OK(cudaMemcpyAsync(a, host, n * sizeof(float), cudaMemcpyHostToDevice, stream));
  const Event copied;
  EXPECT_OK(cudaEventRecord(copied, stream));
  if (waits.next()) EXPECT_OK(cudaEventSynchronize(copied));
  host[n / 2] = 5;
  if (waits.all()) EXPECT_THAT(fetch(a, n, stream), Each(1.F));
}

// The host reads a pinned buffer that a copy has not filled yet.
void host_reads_too_early(Waits& waits) {
  const Stream stream;
  const Floats a(n);
  const PinnedFloats host(n);
  EXPECT_OK(start_fill(stream, a, 4, n));
  EXPECT_OK(cudaMemcpyAsync(host, a, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  if (waits.next()) EXPECT_OK(cudaStreamSynchronize(stream));
  const float last = host[n - 1];
  if (waits.all()) EXPECT_EQ(last, 4);
}

// cudaMemcpy from pageable memory returns once it has read that; the legacy stream still copies.
void staged_copy(Waits& waits) {
  const Stream stream;
  const Floats a(n);
  const std::vector<float> host(n, 3);
  EXPECT_OK(cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  waits.wait(stream, cudaStreamLegacy);
  EXPECT_OK(start_combine(stream, a, a, 1, 0, 1, n));
  if (waits.all()) EXPECT_THAT(fetch(a, n, stream), Each(4.F));
}

class MissingWait : public testing::TestWithParam<Scenario> {};

TEST_P(MissingWait, IsReportedInEveryOrder) {
  const Scenario& scenario = GetParam();
  int waits_of_all = 0;
  in_every_order(10, [&] {
    Waits waits(-1);
    scenario.run(waits);
    waits_of_all = waits.count();
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
  ASSERT_GT(waits_of_all, 0);
  if (!cuda_on_host::present()) return;  // nothing sees a race there
  for (int without = 0; without < waits_of_all; ++without)
    in_every_order(50, [&] {
      Waits waits(without);
      scenario.run(waits);
      EXPECT_THAT(cuda_on_host::races(), testing::Not(IsEmpty())) << "without wait " << without;
    });
}

INSTANTIATE_TEST_SUITE_P(CudaContract, MissingWait,
                         testing::Values(Scenario{"ReadAfterWrite", read_after_write},
                                         Scenario{"WriteAfterRead", write_after_read},
                                         Scenario{"WriteAfterWrite", write_after_write},
                                         Scenario{"OverlapOfOneElement", overlap_of_one_element},
                                         Scenario{"ChainOfFourStreams", chain_of_four_streams},
                                         Scenario{"ForkAndJoin", fork_and_join},
                                         Scenario{"DoubleBuffer", double_buffer},
                                         Scenario{"ThroughAGraph", through_a_graph},
                                         Scenario{"EventRecordedAgain", event_recorded_again},
                                         Scenario{"LegacyAndNonBlocking", legacy_and_non_blocking},
                                         Scenario{"HostWritesTooEarly", host_writes_too_early},
                                         Scenario{"HostReadsTooEarly", host_reads_too_early},
                                         Scenario{"StagedCopy", staged_copy}),
                         [](const auto& test) { return test.param.name; });

TEST(CudaRace, NamesBothOperations) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "nothing sees races on a GPU";
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  const Stream first, second;
  const Floats a(n);
  const PinnedFloats host(n);
  EXPECT_OK(start_fill(first, a, 2, n));
  EXPECT_OK(cudaMemcpyAsync(host, a, n * sizeof(float), cudaMemcpyDeviceToHost, second));
  host[0] = 1;
  EXPECT_THAT(
      cuda_on_host::races(),
      ElementsAre("race: copy of 256 bytes reads what run_elements<cuda_contract::(anonymous "
                  "namespace)::Fill> writes, not ordered",
                  "race: the host writes what copy of 256 bytes writes, not ordered"));
}

}  // namespace
