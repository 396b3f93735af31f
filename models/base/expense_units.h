// What a training run uses up, as types: power, energy, money and its rate. As with the quantities of
// units.h there is no implicit conversion: write Watts{300}, read w.value(). The header is apart from
// units.h because few need it.
#pragma once

#include <compare>
#include <ostream>

#include "models/base/units.h"

namespace paceline {

// `Unit` has the name of the unit in which value() is.
template <class Unit>
class Amount {
 public:
  constexpr Amount() = default;
  explicit constexpr Amount(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }
  constexpr auto operator<=>(const Amount&) const = default;

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount{a.value_ + b.value_}; }
  friend constexpr Amount operator*(Amount a, double b) { return Amount{a.value_ * b}; }
  friend constexpr Amount operator*(double a, Amount b) { return b * a; }
  friend std::ostream& operator<<(std::ostream& out, Amount a) {
    return out << a.value_ << ' ' << Unit::name;
  }

 private:
  double value_ = 0;
};

namespace detail {
struct WattUnit {
  static constexpr const char* name = "W";
};
struct KilowattHourUnit {
  static constexpr const char* name = "kWh";
};
struct UsdUnit {
  static constexpr const char* name = "USD";
};
struct UsdPerHourUnit {
  static constexpr const char* name = "USD/h";
};
}  // namespace detail

using Watts = Amount<detail::WattUnit>;
using KilowattHours = Amount<detail::KilowattHourUnit>;
using Usd = Amount<detail::UsdUnit>;
using UsdPerHour = Amount<detail::UsdPerHourUnit>;

[[nodiscard]] constexpr double in_hours(Seconds time) {
  return time.value() / 3600;
}
[[nodiscard]] constexpr KilowattHours operator*(Watts power, Seconds time) {
  return KilowattHours{power.value() * in_hours(time) / 1000};
}
[[nodiscard]] constexpr Usd operator*(UsdPerHour price, Seconds time) {
  return Usd{price.value() * in_hours(time)};
}

}  // namespace paceline
