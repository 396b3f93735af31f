#include "models/base/parse_units.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double ki = 1024.0;

constexpr std::array<Unit, 5> time_units = {
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}}};
constexpr std::array<Unit, 10> byte_units = {{{"B", 1},
                                              {"kB", 1e3},
                                              {"KB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"KiB", ki},
                                              {"MiB", ki* ki},
                                              {"GiB", ki* ki* ki},
                                              {"TiB", ki* ki* ki* ki}}};
constexpr std::array<Unit, 17> bandwidth_units = {{{"B/s", 1},
                                                   {"kB/s", 1e3},
                                                   {"KB/s", 1e3},
                                                   {"MB/s", 1e6},
                                                   {"GB/s", 1e9},
                                                   {"TB/s", 1e12},
                                                   {"KiB/s", ki},
                                                   {"MiB/s", ki* ki},
                                                   {"GiB/s", ki* ki* ki},
                                                   {"bit/s", 0.125},
                                                   {"kbit/s", 125},
                                                   {"Mbit/s", 125e3},
                                                   {"Gbit/s", 125e6},
                                                   {"Tbit/s", 125e9},
                                                   {"Kbps", 125},
                                                   {"Mbps", 125e3},
                                                   {"Gbps", 125e6}}};
constexpr std::array<Unit, 9> flop_units = {{{"FLOP/s", 1},
                                             {"MFLOP/s", 1e6},
                                             {"GFLOP/s", 1e9},
                                             {"TFLOP/s", 1e12},
                                             {"PFLOP/s", 1e15},
                                             {"FLOPS", 1},
                                             {"GFLOPS", 1e9},
                                             {"TFLOPS", 1e12},
                                             {"PFLOPS", 1e15}}};
constexpr std::array<Unit, 3> power_units = {{{"W", 1}, {"kW", 1e3}, {"MW", 1e6}}};
constexpr std::array<Unit, 1> price_units = {{{"USD/h", 1}}};
constexpr std::array<Unit, 5> duration_units = {
    {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"days", 86400}}};
constexpr std::array<Unit, 3> rate_units = {{{"1/s", 1}, {"images/s", 1}, {"samples/s", 1}}};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Unit lists in messages skip the spellings that are only tolerated.
std::string list_of(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) {
    if (unit.name == "µs" || unit.name == "KB" || unit.name.ends_with("bps") ||
        unit.name.ends_with("FLOPS"))
      continue;
    if (unit.name == "KB/s") continue;
    list += (list.empty() ? "" : ", ") + std::string(unit.name);
  }
  return list;
}

double parse(std::string_view text, std::string_view kind, std::string_view example,
             std::span<const Unit> units) {
  const std::string_view input = trimmed(text);
  double number = 0;
  const auto [end, status] = std::from_chars(input.data(), input.data() + input.size(), number);
  if (status != std::errc{} || !std::isfinite(number)) {
    throw InputError(fmt::format("{} is not a {}", in_quotes(text), kind),
                     fmt::format("write a number and its unit, such as {}", example));
  }
  const std::string_view name = trimmed(input.substr(to_size(end - input.data())));
  if (name.empty()) {
    throw InputError(fmt::format("{} has no unit", in_quotes(text)),
                     fmt::format("write one of {}, as in {}", list_of(units), example));
  }
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (std::signbit(number) && number != 0) {
      throw InputError(fmt::format("{} is negative", in_quotes(text)),
                       fmt::format("a {} is at least 0", kind));
    }
    const double value = number * unit.factor;
    if (!std::isfinite(value)) {
      throw InputError(fmt::format("{} is too large", in_quotes(text)),
                       fmt::format("write a {} such as {}", kind, example));
    }
    return value;
  }
  throw InputError(fmt::format("{} is no unit of a {}", in_quotes(name), kind),
                   fmt::format("write one of {}, as in {}", list_of(units), example));
}

// Chooses the largest unit that leaves a number of at least 1.
std::string scaled(double value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    const bool fits = std::abs(value) >= unit.factor * 0.99995;
    if (fits && (unit.factor > best->factor || std::abs(value) < best->factor * 0.99995))
      best = &unit;
    if (!fits && std::abs(value) < best->factor * 0.99995 && unit.factor < best->factor)
      best = &unit;
  }
  if (value == 0) best = &units.front();
  const double number = value / best->factor;
  // Four digits, but a whole number is never shortened to an exponent.
  return std::abs(number) >= 1e4 ? fmt::format("{:.0f} {}", number, best->name)
                                 : fmt::format("{:.4g} {}", number, best->name);
}

}  // namespace

Seconds parse_seconds(std::string_view text) {
  return Seconds{parse(text, "time", "2 us", time_units)};
}
Bytes parse_bytes(std::string_view text) {
  return Bytes{parse(text, "size", "64 MiB", byte_units)};
}
BytesPerSecond parse_bandwidth(std::string_view text) {
  return BytesPerSecond{parse(text, "bandwidth", "100 Gbit/s", bandwidth_units)};
}
FlopsPerSecond parse_flop_rate(std::string_view text) {
  return FlopsPerSecond{parse(text, "rate of arithmetic", "15.7 TFLOP/s", flop_units)};
}
PerSecond parse_rate(std::string_view text) {
  return PerSecond{parse(text, "rate", "172 images/s", rate_units)};
}
Watts parse_power(std::string_view text) {
  return Watts{parse(text, "power", "300 W", power_units)};
}
UsdPerHour parse_price(std::string_view text) {
  return UsdPerHour{parse(text, "price", "24.48 USD/h", price_units)};
}
Seconds parse_duration(std::string_view text) {
  return Seconds{parse(text, "duration", "90 s", duration_units)};
}

std::int64_t parse_count(std::string_view text, std::int64_t low, std::int64_t high) {
  const std::string_view input = trimmed(text);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(input.data(), input.data() + input.size(), value);
  if (status != std::errc{} || end != input.data() + input.size() || value < low || value > high) {
    throw InputError(
        fmt::format("{} is not a whole number from {} to {}", in_quotes(text), low, high), "");
  }
  return value;
}

double parse_number(std::string_view text, double low, double high) {
  const std::string_view input = trimmed(text);
  double value = 0;
  const auto [end, status] = std::from_chars(input.data(), input.data() + input.size(), value);
  const bool whole = status == std::errc{} && end == input.data() + input.size();
  if (!whole || !(value >= low && value <= high)) {
    throw InputError(fmt::format("{} is not a number from {} to {}", in_quotes(text), low, high),
                     "");
  }
  return value;
}

double parse_share(std::string_view text, double low, double high) {
  const std::string_view input = trimmed(text);
  return input.ends_with('%')
             ? parse_number(input.substr(0, input.size() - 1), 100 * low, 100 * high) / 100
             : parse_number(input, low, high);
}

std::string to_text(Seconds value) {
  static constexpr std::array<Unit, 4> units = {
      {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  return scaled(value.value(), units);
}
std::string to_text(Bytes value) {
  static constexpr std::array<Unit, 5> units = {
      {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}};
  return scaled(value.value(), units);
}
std::string to_text(BytesPerSecond value) {
  static constexpr std::array<Unit, 5> units = {
      {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};
  return scaled(value.value(), units);
}
std::string to_text(FlopsPerSecond value) {
  static constexpr std::array<Unit, 5> units = {
      {{"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
  return scaled(value.value(), units);
}
std::string to_text(PerSecond value) {
  return value.value() >= 1e4 ? fmt::format("{:.0f} samples/s", value.value())
                              : fmt::format("{:.4g} samples/s", value.value());
}
std::string to_text(Watts value) {
  return scaled(value.value(), power_units);
}
std::string to_text(KilowattHours value) {
  static constexpr std::array<Unit, 4> units = {
      {{"Wh", 1e-3}, {"kWh", 1}, {"MWh", 1e3}, {"GWh", 1e6}}};
  return scaled(value.value(), units);
}
std::string to_text(Usd value) {
  static constexpr std::array<Unit, 1> units = {{{"USD", 1}}};
  return scaled(value.value(), units);
}
std::string to_text(UsdPerHour value) {
  return scaled(value.value(), price_units);
}
std::string to_text_binary(Bytes value) {
  static constexpr std::array<Unit, 5> units = {
      {{"B", 1}, {"KiB", ki}, {"MiB", ki * ki}, {"GiB", ki * ki * ki}, {"TiB", ki * ki * ki * ki}}};
  return scaled(value.value(), units);
}
std::string to_text_bits(BytesPerSecond value) {
  static constexpr std::array<Unit, 5> units = {
      {{"bit/s", 0.125}, {"kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"Tbit/s", 125e9}}};
  return scaled(value.value(), units);
}

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (const std::string& part : parts) {
    if (part.empty())
      throw InputError(fmt::format("{} has an empty entry", in_quotes(text)),
                       "separate names by single commas");
  }
  return parts;
}

}  // namespace paceline
