// The error of a rank that waits for a peer which is gone or silent. It is never the first cause of
// a failed job: that is the error of the peer.
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
