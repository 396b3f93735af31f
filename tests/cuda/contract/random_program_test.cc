// Random programs over streams: one that orders whatever conflicts has the results of one stream and no
// race, and a wait is reported as missing exactly if it orders something that nothing else does. What is
// ordered is computed here by sets, and not by the double's clocks.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr std::size_t n = 8;

struct Step {
  enum class Kind { fill, combine, copy, wait, stream_synchronise, event_synchronise };
  Kind kind = Kind::fill;
  int stream = 0;
  int target = 0;  // buffer
  int source = 0;  // buffer
  float value = 0;
  std::size_t event = 0;  // of this work step, for waits
};

bool is_work(const Step& step) {
  return step.kind <= Step::Kind::copy;
}

struct Program {
  std::vector<unsigned> streams;  // their flags; the stream after the last is the legacy one
  int buffers = 0;
  std::vector<Step> steps;
};

// Sets of work steps, by their numbers among the work steps.
using Set = std::uint64_t;
constexpr Set one(std::size_t i) {
  return Set{1} << i;
}

// Reads a program step by step, and knows what is ordered before what.
class Orders {
 public:
  explicit Orders(const Program& program) : program_(program), ends_(program.streams.size() + 1) {}

  // What happens before a work step that is issued into the stream now.
  [[nodiscard]] Set before(int stream) const {
    Set set = ends_[at(stream)] | host_;
    if (is_legacy(stream)) {
      for (std::size_t s = 0; s < program_.streams.size(); ++s)
        if (program_.streams[s] == cudaStreamDefault) set |= ends_[s];
    } else if (program_.streams[at(stream)] == cudaStreamDefault) {
      set |= ends_.back();
    }
    return set;
  }

  void read(const Step& step) {
    switch (step.kind) {
      case Step::Kind::wait:
        ends_[at(step.stream)] = before(step.stream) | up_to_[step.event];
        break;
      case Step::Kind::stream_synchronise:
        host_ |= ends_[at(step.stream)];
        break;
      case Step::Kind::event_synchronise:
        host_ |= up_to_[step.event];
        break;
      default:
        up_to_.push_back(before(step.stream) | one(up_to_.size()));
        ends_[at(step.stream)] = up_to_.back();
    }
  }

  [[nodiscard]] std::size_t work_steps() const { return up_to_.size(); }

 private:
  [[nodiscard]] bool is_legacy(int stream) const { return at(stream) == program_.streams.size(); }
  static std::size_t at(int stream) { return static_cast<std::size_t>(stream); }
  const Program& program_;
  std::vector<Set> ends_;   // what happens before the next step, by stream
  std::vector<Set> up_to_;  // what happens before each work step, and it
  Set host_ = 0;
};

bool conflict(const Step& a, const Step& b) {
  const auto reads = [](const Step& s) { return s.kind == Step::Kind::fill ? -1 : s.source; };
  return a.target == b.target || reads(a) == b.target || a.target == reads(b);
}

// Whether all work steps that conflict are ordered.
bool is_ordered(const Program& program) {
  Orders orders(program);
  std::vector<Step> work;
  for (const Step& step : program.steps) {
    if (is_work(step)) {
      const Set before = orders.before(step.stream);
      for (std::size_t i = 0; i < work.size(); ++i)
        if (conflict(work[i], step) && (before & one(i)) == 0) return false;
      work.push_back(step);
    }
    orders.read(step);
  }
  return true;
}

// Work steps, and before each the waits that it needs; now and then one that it does not need.
Program ordered_program(std::mt19937_64& random) {
  const auto draw = [&](std::uint64_t below) { return static_cast<int>(random() % below); };
  Program program;
  for (int s = 2 + draw(3); s > 0; --s)
    program.streams.push_back(draw(3) == 0 ? cudaStreamDefault : cudaStreamNonBlocking);
  program.buffers = 2 + draw(3);
  Orders orders(program);
  std::vector<Step> work;
  const auto add = [&](const Step& step) {
    program.steps.push_back(step);
    orders.read(step);
  };
  const int count = 3 + draw(16);
  while (work.size() < static_cast<std::size_t>(count)) {
    Step step;
    step.kind = static_cast<Step::Kind>(draw(3));
    const int with_legacy = draw(8) == 0 ? 1 : 0;
    step.stream =
        with_legacy == 1 ? static_cast<int>(program.streams.size()) : draw(program.streams.size());
    step.target = draw(static_cast<std::uint64_t>(program.buffers));
    step.source = draw(static_cast<std::uint64_t>(program.buffers));
    if (step.kind == Step::Kind::copy && step.source == step.target) continue;
    step.value = static_cast<float>(draw(10));
    for (std::size_t i = work.size(); i-- > 0;) {
      const bool needed = conflict(work[i], step) && (orders.before(step.stream) & one(i)) == 0;
      if (!needed && draw(12) != 0) continue;
      Step wait;
      wait.stream = draw(8) == 0 ? work[i].stream : step.stream;
      wait.event = i;
      const int kind = draw(8);
      wait.kind = kind == 0   ? Step::Kind::event_synchronise
                  : kind == 1 ? Step::Kind::stream_synchronise
                              : Step::Kind::wait;
      if (wait.kind == Step::Kind::stream_synchronise) wait.stream = work[i].stream;
      if (wait.kind == Step::Kind::wait) wait.stream = step.stream;
      add(wait);
    }
    work.push_back(step);
    add(step);
  }
  return program;
}

void work_on_host(const Step& step, std::vector<std::vector<float>>& buffers) {
  std::vector<float>& y = buffers[static_cast<std::size_t>(step.target)];
  const std::vector<float> x = buffers[static_cast<std::size_t>(step.source)];
  for (std::size_t i = 0; i < n; ++i)
    y[i] = step.kind == Step::Kind::fill   ? step.value
           : step.kind == Step::Kind::copy ? x[i]
                                           : x[i] + y[i] + step.value;
}

std::vector<std::vector<float>> run_on_host(const Program& program) {
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(program.buffers),
                                          std::vector<float>(n, 1));
  for (const Step& step : program.steps)
    if (is_work(step)) work_on_host(step, buffers);
  return buffers;
}

std::vector<std::vector<float>> run(const Program& program) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (const unsigned flags : program.streams) streams.push_back(std::make_unique<Stream>(flags));
  std::vector<std::unique_ptr<Floats>> buffers;
  for (int b = 0; b < program.buffers; ++b) {
    buffers.push_back(std::make_unique<Floats>(n));
    EXPECT_OK(start_fill(nullptr, *buffers.back(), 1, n));
  }
  EXPECT_OK(cudaDeviceSynchronize());
  std::vector<std::unique_ptr<Event>> events;
  for (const Step& step : program.steps) {
    const auto number = static_cast<std::size_t>(step.stream);
    const cudaStream_t stream = number < streams.size() ? *streams[number] : cudaStream_t{nullptr};
    float* const y = *buffers[static_cast<std::size_t>(step.target)];
    const float* const x = *buffers[static_cast<std::size_t>(step.source)];
    switch (step.kind) {
      case Step::Kind::fill:
        EXPECT_OK(start_fill(stream, y, step.value, n));
        break;
      case Step::Kind::combine:
        EXPECT_OK(start_combine(stream, y, x, 1, 1, step.value, n));
        break;
      case Step::Kind::copy:
        EXPECT_OK(cudaMemcpyAsync(y, x, n * sizeof(float), cudaMemcpyDeviceToDevice, stream));
        break;
      case Step::Kind::wait:
        EXPECT_OK(cudaStreamWaitEvent(stream, *events[step.event], 0));
        break;
      case Step::Kind::stream_synchronise:
        EXPECT_OK(cudaStreamSynchronize(stream));
        break;
      case Step::Kind::event_synchronise:
        EXPECT_OK(cudaEventSynchronize(*events[step.event]));
        break;
    }
    if (!is_work(step)) continue;
    events.push_back(std::make_unique<Event>());
    EXPECT_OK(cudaEventRecord(*events.back(), stream));
  }
  EXPECT_OK(cudaDeviceSynchronize());
  std::vector<std::vector<float>> results;
  for (const auto& buffer : buffers) results.push_back(fetch(*buffer, n, nullptr));
  return results;
}

cuda_on_host::Order order_of(std::uint64_t seed) {
  return all_orders[seed % 3];
}

TEST(CudaRandomProgram, HasTheResultsOfOneStream) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    const Program program = ordered_program(random);
    ASSERT_TRUE(is_ordered(program));
    cuda_on_host::reset(order_of(seed), seed);
    EXPECT_EQ(run(program), run_on_host(program)) << "seed " << seed;
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty()) << "seed " << seed;
    EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

TEST(CudaRandomProgram, WithoutAWaitIsReportedUnlessTheWaitIsRedundant) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "nothing sees races on a GPU";
  int needed = 0;
  int redundant = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed);
    const Program program = ordered_program(random);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (is_work(program.steps[i])) continue;
      Program without = program;
      without.steps.erase(without.steps.begin() + static_cast<std::ptrdiff_t>(i));
      const bool ordered = is_ordered(without);
      (ordered ? redundant : needed) += 1;
      cuda_on_host::reset(order_of(seed + i), seed);
      static_cast<void>(run(without));
      EXPECT_EQ(cuda_on_host::races().empty(), ordered) << "seed " << seed << ", step " << i;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(needed, 300);
  EXPECT_GT(redundant, 100);
}

}  // namespace
