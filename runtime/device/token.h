// A token: a point in work that was started and not awaited. It can be tested, waited for with a
// deadline, and waited for by another stream without the host (Stream::wait_for).
//
// A token is a small value. Its source (a stream, an executor) outlives it, unless it is done.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/base/units.h"

namespace paceline::runtime {

class Token {
 public:
  // What tokens are points of. Points are the source's own numbers.
  class Source {
   public:
    virtual ~Source() = default;
    // Whether the work up to the point is done. Does not block. Throws RunError if the work failed.
    [[nodiscard]] virtual bool is_done(std::uint64_t point) = 0;
    // Returns when the work up to the point is done (true), or after so long (false). Throws as
    // is_done() does.
    [[nodiscard]] virtual bool wait(std::uint64_t point, Seconds longest) = 0;
  };

  // A token that is done.
  Token() = default;
  Token(Source& source, std::uint64_t point) : source_(&source), point_(point) {}

  [[nodiscard]] bool is_done() const { return source_ == nullptr || source_->is_done(point_); }
  [[nodiscard]] bool wait(Seconds longest) const {
    return source_ == nullptr || source_->wait(point_, longest);
  }

  // Returns null for a token that was made done.
  [[nodiscard]] Source* source() const { return source_; }
  [[nodiscard]] std::uint64_t point() const { return point_; }

 private:
  Source* source_ = nullptr;
  std::uint64_t point_ = 0;
};

// Returns when the token is done. Throws RunError "cannot <operation>: the device was not done in
// <patience> s" after so long, and as the token does.
void wait_for(const Token& token, Seconds patience, std::string_view operation);

// How long a rank waits for kernels of its own device.
inline constexpr Seconds device_patience{300};

}  // namespace paceline::runtime
