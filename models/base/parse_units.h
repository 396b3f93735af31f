// Quantities as people write them: "100 Gbit/s", "2 us", "64 MiB"; and the way back.
//
// A number without its unit is an error that lists the units that would do. The space
// between number and unit is optional. The prefixes k, M, G, T, P are decimal, Ki, Mi, Gi
// are binary, and "bit" is an eighth of "B". Values must be finite and, except in
// parse_number(), not negative. Money is in dollars of the United States.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/expense_units.h"
#include "models/base/units.h"

namespace paceline {

// Each throws InputError if the text is not a non-negative number with a unit of its kind.
[[nodiscard]] Seconds parse_seconds(std::string_view text);  // s, ms, us, ns
[[nodiscard]] Bytes parse_bytes(
    std::string_view text);  // B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB
[[nodiscard]] BytesPerSecond parse_bandwidth(
    std::string_view text);  // B/s ... TB/s, KiB/s..., bit/s ... Tbit/s (also Gbps)
[[nodiscard]] FlopsPerSecond parse_flop_rate(
    std::string_view text);                                   // FLOP/s ... PFLOP/s (also TFLOPS)
[[nodiscard]] PerSecond parse_rate(std::string_view text);    // 1/s, images/s, samples/s
[[nodiscard]] Watts parse_power(std::string_view text);       // W, kW, MW
[[nodiscard]] UsdPerHour parse_price(std::string_view text);  // USD/h
// A time of the clock on the wall, which may be long: ms, s, min, h, days.
[[nodiscard]] Seconds parse_duration(std::string_view text);

// The parts of "a,b,c". Throws InputError if a part is empty.
[[nodiscard]] std::vector<std::string> comma_list(const std::string& text);

// A plain whole number in [low, high]. Throws InputError.
[[nodiscard]] std::int64_t parse_count(std::string_view text, std::int64_t low, std::int64_t high);
// A plain decimal number in [low, high]. Throws InputError.
[[nodiscard]] double parse_number(std::string_view text, double low, double high);
// A share in [low, high], as "0.45" or "45%". Throws InputError.
[[nodiscard]] double parse_share(std::string_view text, double low, double high);

// The value to four significant digits with a scaled unit: "3.262 s", "58.72 MB", "92.4 Gbit/s".
// Parsing the text gives the value to those digits.
[[nodiscard]] std::string to_text(Seconds value);
[[nodiscard]] std::string to_text(Bytes value);           // decimal prefixes
[[nodiscard]] std::string to_text(BytesPerSecond value);  // bytes: "12.25 GB/s"
[[nodiscard]] std::string to_text(FlopsPerSecond value);
[[nodiscard]] std::string to_text(PerSecond value);  // "172 /s" is written "172 samples/s"
[[nodiscard]] std::string to_text(Watts value);
[[nodiscard]] std::string to_text(KilowattHours value);
[[nodiscard]] std::string to_text(Usd value);  // "313.9 USD"
[[nodiscard]] std::string to_text(UsdPerHour value);
[[nodiscard]] std::string to_text_binary(Bytes value);         // "64 MiB"
[[nodiscard]] std::string to_text_bits(BytesPerSecond value);  // "100 Gbit/s"

}  // namespace paceline
