// Tests: tests/models/dispatch_test.cc.
#include "models/plan/dispatch.h"

#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<Negotiation, std::string_view>, 4> negotiations = {
    {{Negotiation::none, "none"},
     {Negotiation::messages, "messages"},
     {Negotiation::gather, "gather"},
     {Negotiation::bits, "bits"}}};

using Version = std::array<int, 3>;

Version parse_version(std::string_view text) {
  const auto fail = [&]() -> Version {
    throw InputError(in_quotes(text) + " is no version of Horovod that is known",
                     "give one from 0.9.0 on, as in 0.21 or 0.13.5");
  };
  Version version{};
  std::string_view left = text;
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), version[i]);
    if (error != std::errc{} || version[i] < 0 || left.front() == '-') return fail();
    left.remove_prefix(to_size(end - left.data()));
    if (left.empty())
      return i >= 1 && version >= Version{0, 9, 0} && version[0] == 0 ? version : fail();
    if (left.front() != '.') return fail();
    left.remove_prefix(1);
    if (left.empty()) return fail();
  }
  return fail();
}

}  // namespace

std::string_view name(Negotiation negotiation) {
  for (const auto& [value, text] : negotiations) {
    if (value == negotiation) return text;
  }
  return "unknown";
}

Negotiation negotiation_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : negotiations) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("negotiation", text, known);
}

HorovodDefaults horovod_defaults(std::string_view version) {
  const Version v = parse_version(version);
  constexpr Bytes mebibyte{1024.0 * 1024};
  HorovodDefaults defaults;
  defaults.cycle = v >= Version{0, 21, 0} ? 1e-3 * Seconds{1} : 5e-3 * Seconds{1};
  defaults.fusion = v >= Version{0, 21, 0}  ? 128 * mebibyte
                    : v >= Version{0, 9, 5} ? 64 * mebibyte
                                            : Bytes{0};
  defaults.negotiation = v >= Version{0, 16, 2}   ? Negotiation::bits
                         : v >= Version{0, 13, 8} ? Negotiation::gather
                                                  : Negotiation::messages;
  return defaults;
}

}  // namespace paceline::models
