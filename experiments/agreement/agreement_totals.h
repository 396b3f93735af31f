// What the cells of an agreement say together, and all of it as JSON (docs/formats.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "experiments/agreement/agreement.h"
#include "models/base/document.h"

namespace paceline::experiments {

struct AgreementTotals {
  std::size_t apart = 0;                 // how many cells are further apart than they may be
  const AgreementCell* worst = nullptr;  // the cell where the flow engine is the most apart
  double worst_step = 0;                 // the step engine's, of cells where no link is shared
  std::string simgrid;                   // SimGrid's version
  Seconds wall;                          // how long the comparison took
};

// The totals of at least one cell. They refer to the cells, which must outlive them.
[[nodiscard]] AgreementTotals totals(std::span<const AgreementCell> cells, Seconds wall);

struct Agreement {
  const AgreementRequest& request;
  std::span<const AgreementCell> cells;
  const AgreementTotals& totals;
};
[[nodiscard]] const Document<Agreement>& agreement_document();

}  // namespace paceline::experiments
