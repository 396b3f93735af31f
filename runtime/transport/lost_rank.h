// A peer is gone or silent: the error of every rank that waits for it, and never the first cause.
#pragma once

#include <string_view>

#include "models/base/error.h"

namespace paceline::runtime {

class LostRank : public RunError {
 public:
  using RunError::RunError;
};

// Throws LostRank: "cannot receive from rank 3: <why>".
[[noreturn]] void throw_lost(int peer, bool sends, std::string_view why);

}  // namespace paceline::runtime
