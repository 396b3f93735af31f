// The time of a closed form on a link: what the engines are held against (tests/agreement).
#pragma once

#include "models/base/units.h"
#include "models/collective/closed_form.h"

namespace paceline::simulator {

struct AlphaBetaGamma {
  Seconds alpha;         // per message
  SecondsPerByte beta;   // per byte sent
  SecondsPerByte gamma;  // per byte reduced
};

[[nodiscard]] constexpr Seconds closed_form_time(const AlphaBetaGamma& link,
                                                 const models::ClosedForm& form, Bytes bytes) {
  return form.alpha * link.alpha + form.beta * bytes * link.beta + form.gamma * bytes * link.gamma;
}

}  // namespace paceline::simulator
