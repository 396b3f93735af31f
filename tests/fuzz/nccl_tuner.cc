// Any bytes as a file of the tuner plugin: rules in order that do not overlap and constants of NCCL's
// own table, or a fault in one of its lines.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "models/base/error.h"
#include "runtime/nccl_tuner/tuner_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::nccl_tuner;
  const auto file = std::make_unique<TunerFile>();
  // A copy of just these bytes: reading beyond them is an error of the address sanitizer's.
  const std::unique_ptr<char[]> text(new char[size]);
  if (size > 0) std::memcpy(text.get(), data, size);
  const Fault fault = parse(text.get(), size, *file);
  if (fault.what != nullptr) {
    PACELINE_ASSERT(fault.line >= 0 && static_cast<std::size_t>(fault.line) <= size,
                    "a fault is in a line of the file");
    return 0;
  }
  PACELINE_ASSERT(std::strlen(file->plan) > 0 && std::strlen(file->plan) <= longest_line,
                  "a plan has a name");
  PACELINE_ASSERT(file->rule_count >= 0 && file->rule_count <= most_rules, "rules are counted");
  for (int i = 0; i < file->rule_count; ++i) {
    const Rule& rule = file->rules[i];
    PACELINE_ASSERT(rule.least <= rule.most && rule.most <= most_bytes, "a range is one");
    PACELINE_ASSERT(rule.algorithm >= 0 && rule.algorithm < algorithms, "NCCL has the algorithm");
    PACELINE_ASSERT(rule.protocol >= 0 && rule.protocol < protocols, "NCCL has the protocol");
    PACELINE_ASSERT(rule.channels >= 0 && rule.channels <= most_channels, "channels are few");
    PACELINE_ASSERT(rule.nodes >= 1 && rule.nodes <= rule.ranks, "a node has a rank");
    if (i == 0) continue;
    const Rule& last = file->rules[i - 1];
    const bool same =
        last.function == rule.function && last.ranks == rule.ranks && last.nodes == rule.nodes;
    PACELINE_ASSERT(!same || last.most < rule.least, "ranges do not overlap");
  }
  for (int i = 0; i < file->constant_count; ++i) {
    PACELINE_ASSERT(file->constants[i].slot < constant_slots, "NCCL has the constant");
    PACELINE_ASSERT(file->constants[i].value > 0, "a constant is above 0");
  }
  return 0;
}
