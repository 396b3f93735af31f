// The memory that the compiler plans for a network, without a device: whatever a step reads is what
// the step before wrote that made it, so that no two tensors that are needed at one time overlap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/network/zoo.h"
#include "runtime/network/cuda/compiler.h"
#include "tests/support/drawn_network.h"

namespace paceline::runtime::cuda {
namespace {

using models::Network;
using steps::Role;
using steps::Step;
using Kind = steps::Tensor::Kind;

constexpr std::array networks = {"alexnet",      "alexnet-bn",   "alexnet-bn-refined", "vgg16",
                                 "inception-v3", "inception-v4", "resnet50",           "resnet101",
                                 "resnet152",    "resnet-small", "cnn-small"};

std::set<int> roles_of(const Step& step) {
  std::set<int> roles;
  for (const auto* operands : {&step.reads, &step.writes})
    for (const steps::Operand& operand : *operands) roles.insert(operand.role);
  return roles;
}

// Computes nothing, and notes what it is bound to.
class NotingLibrary final : public StepLibrary {
 public:
  struct Note {
    steps::Operation operation;
    std::map<int, Bound> operands;
  };
  [[nodiscard]] bool computes(const steps::Operation&, NumberType) const override { return true; }
  void plan(std::span<const steps::Operation> operations, NumberType storage) override {
    for (const steps::Operation& operation : operations) planned.insert(key(operation, storage));
  }
  [[nodiscard]] std::size_t workspace() const override { return 12345; }
  int bind(const steps::Operation& operation, NumberType storage, std::span<const Bound> operands,
           void* workspace) override {
    EXPECT_TRUE(planned.contains(key(operation, storage)));
    EXPECT_NE(workspace, nullptr);
    Note note{operation, {}};
    for (const Bound& operand : operands)
      EXPECT_TRUE(note.operands.emplace(operand.role, operand).second) << operand.role;
    notes.push_back(std::move(note));
    return static_cast<int>(notes.size()) - 1;
  }
  void start(int, cudaStream_t) override { FAIL() << "nothing runs here"; }

  std::set<std::string> planned;
  std::vector<Note> notes;
};

struct Compiled {
  Program program;
  std::size_t arena_bytes = 0;
};
constexpr std::uintptr_t arena_place = std::uintptr_t{1} << 40;
constexpr std::uintptr_t kept_place = std::uintptr_t{1} << 44;

Compiled compiled(const Network& network, StepLibrary* library) {
  const TrainableNetworkOptions options{.batch = 2, .storage = NumberType::fp16};
  const std::vector<ParameterPlace> places = parameter_places(network);
  Memories memories;
  static_cast<void>(compile(network, options, places, library, memories));
  memories.measure();
  memories.bind(reinterpret_cast<std::byte*>(arena_place),
                reinterpret_cast<std::byte*>(kept_place));
  return {compile(network, options, places, library, memories), memories.arena_bytes()};
}

// What stands where in the arena, while steps run.
class Arena {
 public:
  explicit Arena(const Compiled& compiled) : compiled_(compiled) {}

  void write(const std::string& name, const void* first, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t end = begin + bytes;
    if (begin < arena_place || end > arena_place + compiled_.arena_bytes)
      fault = name + " is not in the arena";
    if (begin % 16 != 0) fault = name + " is not aligned";
    std::erase_if(standing_, [&](const auto& other) {
      return other.second.begin < end && begin < other.second.end;
    });
    standing_[name] = {begin, end};
  }
  void read(const std::string& name, const void* first, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(first);
    const auto found = standing_.find(name);
    if (found == standing_.end()) {
      fault = name + " was overwritten before it was read";
    } else if (found->second.begin != begin || found->second.end != begin + bytes) {
      fault = name + " is read elsewhere than it was written";
    }
  }
  std::string fault;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  const Compiled& compiled_;
  std::map<std::string, Range> standing_;
};

std::string name_of(const steps::Tensor& tensor) {
  return fmt::format("tensor {}.{} of layer {}", static_cast<int>(tensor.kind), tensor.part,
                     tensor.layer);
}

// Of an operand that is the gradient of parameters; 0 for others.
std::size_t scratch_bytes(const steps::Operation& operation, int role) {
  const auto* c = std::get_if<steps::Convolution>(&operation);
  if (c != nullptr && role == static_cast<int>(Role::dw))
    return static_cast<std::size_t>(c->y.channels * (c->x.channels / c->groups) * c->kernel.height *
                                    c->kernel.width * 2);
  const auto* norm = std::get_if<steps::BatchNorm>(&operation);
  const bool is_gradient = role == static_cast<int>(Role::scale_gradient) ||
                           role == static_cast<int>(Role::shift_gradient);
  return norm != nullptr && is_gradient ? static_cast<std::size_t>(norm->x.channels) * 4 : 0;
}

// The first fault; empty if there is none.
std::string fault_of(const Network& network, bool by_library) {
  NotingLibrary library;
  const Compiled made = compiled(network, by_library ? &library : nullptr);
  Arena arena(made);
  std::size_t bound = 0;
  std::size_t checked = 0;
  for (const Step& step : steps::layer_steps(network, 2)) {
    std::vector<std::pair<steps::Tensor, PlacedTensor>> written;
    for (const steps::Operand& operand : step.reads) {
      const auto place = made.program.tensors.find(operand.tensor);
      if (place == made.program.tensors.end()) continue;
      arena.read(name_of(operand.tensor), place->second.first, place->second.bytes);
      ++checked;
    }
    const auto* operation = std::get_if<steps::Operation>(&step.work);
    const bool is_misaligned_norm = by_library && operation != nullptr &&
                                    bound < library.notes.size() &&
                                    library.notes[bound].operation != *operation;
    if (by_library && operation != nullptr && !is_misaligned_norm) {
      const NotingLibrary::Note& note = library.notes.at(bound++);
      std::set<int> roles = roles_of(step);
      const auto* norm = std::get_if<steps::BatchNorm>(operation);
      if (norm != nullptr && norm->pass == steps::Pass::forward)
        roles.insert({static_cast<int>(Role::epsilon), static_cast<int>(Role::momentum)});
      std::set<int> given;
      for (const auto& [role, operand] : note.operands) {
        given.insert(role);
        const bool is_number =
            role == static_cast<int>(Role::epsilon) || role == static_cast<int>(Role::momentum);
        if (is_number ? operand.number <= 0 : operand.memory == nullptr)
          return fmt::format("role {} has nothing", role);
        if (reinterpret_cast<std::uintptr_t>(operand.memory) % 16 != 0)
          return fmt::format("role {} is not aligned", role);
        if (const std::size_t bytes = scratch_bytes(*operation, role); bytes > 0)
          arena.write(fmt::format("scratch {}", role), operand.memory, bytes);
      }
      if (given != roles) return "a step has other operands than it names";
    }
    for (const steps::Operand& operand : step.writes) {
      const auto place = made.program.tensors.find(operand.tensor);
      if (place == made.program.tensors.end()) continue;
      arena.write(name_of(operand.tensor), place->second.first, place->second.bytes);
    }
    // Nothing that the step writes may lie on what it reads.
    for (const steps::Operand& operand : step.reads) {
      const auto place = made.program.tensors.find(operand.tensor);
      if (place != made.program.tensors.end())
        arena.read(name_of(operand.tensor), place->second.first, place->second.bytes);
    }
    if (!arena.fault.empty()) return arena.fault;
  }
  if (bound != library.notes.size()) return "the library was given other steps";
  return checked > network.layers().size() ? "" : "hardly anything was checked";
}

TEST(NetworkMemory, HoldsWhatStepsReadUntilTheyReadIt) {
  for (const char* name : networks)
    for (const bool by_library : {false, true})
      EXPECT_EQ(fault_of(models::zoo_network(name), by_library), "") << name << by_library;
}

RC_GTEST_PROP(NetworkMemory, HoldsWhatStepsOfADrawnNetworkRead, ()) {
  const Network network = test::drawn_network();
  RC_ASSERT(fault_of(network, false) == "");
  RC_ASSERT(fault_of(network, true) == "");
}

// Memory is shared: less than half of what tensors take that have places of their own.
TEST(NetworkMemory, IsShared) {
  const Compiled made = compiled(models::zoo_network("resnet50"), nullptr);
  std::size_t apart = 0;
  for (const auto& [tensor, place] : made.program.tensors) apart += place.bytes;
  EXPECT_LT(made.arena_bytes, apart / 2) << made.arena_bytes << " of " << apart;
}

}  // namespace
}  // namespace paceline::runtime::cuda
