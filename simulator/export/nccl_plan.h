// A plan in the form that NCCL takes: files of its tuner plugins, and the configuration of its
// communicators.
//
// NCCL chooses by size, and has rings and trees of its own. So a plan's ring, bidirectional-ring and
// multi-ring are NCCL's ring, and its double-binary-tree is NCCL's tree, for the sizes of their
// buckets; NCCL decides how many channels they have. An all-reduce that the plan leaves to NCCL, and
// every size that the plan does not have, takes the fastest by nccl_rules.h. What else a plan says,
// NCCL has no words for: `notes` has a line for each such thing.
#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/export/nccl_rules.h"

namespace paceline::simulator {

class NcclPlan {
 public:
  // The plan must be for the practice's ranks.
  NcclPlan(const models::Plan& plan, const NcclPractice& practice);

  [[nodiscard]] const std::vector<NcclAsked>& asked() const { return asked_; }
  // What NCCL cannot be told of the plan, a line each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<NcclAsked> asked_;
  std::vector<std::string> notes_;
};

struct ExportedText {
  std::string text;
  std::vector<std::string> notes;  // what the text cannot say, a line each
};

// What the files name the plan: "resnet50, fused-ring, 64 ranks".
[[nodiscard]] std::string plan_title(const std::string& network, const models::Plan& plan);

// The file of libnccl-tuner-paceline.so (docs/formats.md): rules for what the plan asks for, and for
// all else rules, or with `by_constants` the numbers by which NCCL finds it by itself.
[[nodiscard]] ExportedText nccl_tuner_text(const std::string& title, const models::Plan& plan,
                                           const NcclPractice& practice, bool by_constants);

// The file of NVIDIA's example plugin (ext-tuner/example of NCCL 2.28, plugin.c). It gives every call
// that no line is for one channel. So each size of an all-reduce has a line, with 0 channels, by which
// NCCL decides (-1 would keep the one).
[[nodiscard]] ExportedText nccl_csv_text(const std::string& title, const models::Plan& plan,
                                         const NcclPractice& practice);

// Values of ncclConfig_t as JSON (paceline.nccl-config/1), for a communicator for each stream of the
// plan.
[[nodiscard]] ExportedText nccl_config_text(const std::string& title, const models::Plan& plan,
                                            const NcclPractice& practice);

}  // namespace paceline::simulator
