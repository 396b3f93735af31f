// What the predictions of a job rest on: the figures of its cluster and of its profile, one by one, as
// tables, JSON documents and reports list them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/job/job.h"
#include "models/base/document.h"

namespace paceline::job {

enum class BasisUnit {
  seconds,
  bytes_per_second,
  share,   // 0.015 is 1.5 %
  factor,  // 1.05 is 1.05 times as much
  ratio,   // 2 is 2:1
  number,
};

// "s", "bytes_per_s", "share", "factor", "ratio", "number".
[[nodiscard]] std::string_view name(BasisUnit unit);

struct BasisLine {
  std::string what;            // "NIC latency"
  Figure<double> figure = {};  // in the unit; of no account where there is a text
  BasisUnit unit = BasisUnit::number;
  std::string text = {};  // of what no figure says: a platform, a fabric, a placement
};

// The lines in the order in which people read them: links, fabric, memory, then effects. Effects that
// change nothing are left out. All but where the compute times come from, which a prediction says.
[[nodiscard]] std::vector<BasisLine> basis_of(const Job& job);

// The effects that count in the job's predictions; null if none do.
[[nodiscard]] const models::Effects* effects_of(const Job& job);

// An element of the array `rests_on` of documents (docs/formats.md).
[[nodiscard]] const Document<BasisLine>& basis_document();

}  // namespace paceline::job
