// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/training/shared_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "models/base/error.h"
#include "models/base/first_difference.h"
#include "models/base/to_size.h"
#include "runtime/channel/messages.h"
#include "runtime/training/job_description.h"

namespace paceline::runtime {
namespace {

// In what the job of a checkpoint differs from this job: "it has "A", and this job "B"". Empty
// where it does not.
std::string difference(const Checkpoint& checkpoint, const std::string& job) {
  const auto [theirs, ours] = first_difference(checkpoint.job, job);
  if (theirs.empty() && ours.empty()) return {};
  return fmt::format("it has \"{}\", and this job \"{}\"", theirs, ours);
}

// Throws InputError on all ranks if rank 0 found something wrong with `path`.
void refuse_together(Channel& channel, const std::string& path, std::string problem,
                     std::string remedy) {
  problem = broadcast_text(channel, std::move(problem));
  remedy = broadcast_text(channel, std::move(remedy));
  if (!problem.empty()) throw InputError({path}, problem, remedy);
}

// What is wrong with replacing the file at `path`; empty where nothing is.
std::string replacement_problem(const std::string& path, const std::string& job) {
  try {
    const std::string differs = difference(read_checkpoint(path), job);
    return differs.empty() ? "" : "a checkpoint of another job is there: " + differs;
  } catch (const InputError& damage) {
    return "a file is there that a checkpoint would replace: " + damage.problem();
  }
}

}  // namespace

std::unique_ptr<CheckpointLock> claim_checkpoint_path(Channel& channel, const std::string& path,
                                                      const std::string& resume,
                                                      const std::string& job) {
  if (path.empty()) return nullptr;
  std::unique_ptr<CheckpointLock> lock;
  std::string problem;
  std::string remedy = "give another path, or move the file away";
  std::error_code error;
  const bool goes_on = !resume.empty() && std::filesystem::equivalent(path, resume, error);
  if (channel.rank() == 0) {
    try {
      lock = std::make_unique<CheckpointLock>(path);
      // The file is looked at under the lock: nobody replaces it from here on.
      if (!goes_on && std::filesystem::exists(path, error))
        problem = replacement_problem(path, job);
    } catch (const InputError& claimed) {
      problem = claimed.problem();
      remedy = claimed.remedy();
    } catch (const RunError& failure) {
      problem = failure.what();
      remedy = "give another path";
    }
  }
  refuse_together(channel, path, std::move(problem), std::move(remedy));
  return lock;
}

void write_together(Channel& channel, const std::string& path, const Checkpoint& checkpoint) {
  std::string failure;
  if (channel.rank() == 0) {
    try {
      write_checkpoint(path, checkpoint);
    } catch (const RunError& error) {
      failure = error.what();  // "cannot write PATH: No space left on device"
    }
  }
  failure = broadcast_text(channel, failure);
  if (!failure.empty()) throw RunError("write the checkpoint", failure);
}

SharedCheckpoint::SharedCheckpoint(Channel& channel, const std::string& path,
                                   const std::string& job)
    : channel_(channel) {
  std::string problem;
  std::string remedy;
  if (channel.rank() == 0) {
    try {
      checkpoint_ = read_checkpoint(path);
      if (const std::string differs = why_not_resumed(checkpoint_.job, job); !differs.empty()) {
        problem = "a checkpoint of another job: " + differs;
        remedy =
            "resume with the options that it was started with, or at other ranks with as many "
            "samples in a step";
      }
    } catch (const InputError& error) {
      problem = error.problem();
      remedy = error.remedy();
    }
  }
  refuse_together(channel, path, std::move(problem), std::move(remedy));

  const bool has_pending = std::ranges::find(checkpoint_.arrays, "gradients.pending",
                                             &CheckpointArray::name) != checkpoint_.arrays.end();
  std::array<double, 8> numbers = {static_cast<double>(checkpoint_.epoch),
                                   static_cast<double>(checkpoint_.batch),
                                   static_cast<double>(checkpoint_.iteration),
                                   checkpoint_.loss_scale.scale,
                                   static_cast<double>(checkpoint_.loss_scale.good_steps),
                                   static_cast<double>(checkpoint_.loss_scale.skipped),
                                   has_pending ? 1.0 : 0.0,
                                   static_cast<double>(ranks_of(checkpoint_.job))};
  broadcast(channel, std::as_writable_bytes(std::span(numbers)));
  position_ = {.epoch = static_cast<std::int64_t>(numbers[0]),
               .batch = static_cast<std::int64_t>(numbers[1]),
               .iteration = static_cast<std::int64_t>(numbers[2])};
  loss_scale_ = {.scale = numbers[3],
                 .good_steps = static_cast<std::int64_t>(numbers[4]),
                 .skipped = static_cast<std::int64_t>(numbers[5])};
  has_pending_gradients_ = numbers[6] > 0;
  ranks_ = static_cast<int>(numbers[7]);
}

std::vector<float> SharedCheckpoint::take(const std::string& name, std::size_t elements) const {
  std::vector<float> values(elements);
  if (channel_.rank() == 0) std::ranges::copy(checkpoint_.array(name, elements), values.begin());
  broadcast(channel_, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::vector<float>> SharedCheckpoint::take_of_ranks(const std::string& name,
                                                                std::size_t elements) const {
  const std::vector<float> all = take(name, elements * to_size(ranks_));
  std::vector<std::vector<float>> of_ranks;
  for (std::size_t rank = 0; rank < to_size(ranks_); ++rank) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * elements);
    of_ranks.emplace_back(first, first + static_cast<std::ptrdiff_t>(elements));
  }
  return of_ranks;
}

}  // namespace paceline::runtime
