// Physical quantities as types: a time is not a byte count, and a bandwidth is not its inverse.
//
// A Quantity is a double with exponents of (time, byte, flop). Products and quotients
// combine the exponents, so that alpha + bytes * beta compiles and alpha + bytes does not.
// Counts of bytes and FLOPs are exact up to 2^53. There is no implicit conversion either
// way: write Seconds{0.5}, read t.value(). In inner loops and kernels use plain doubles
// with the unit in the name (time_s).
//
// SI prefixes are decimal (1 GB/s = 1e9 bytes/s); KiB, MiB and GiB are binary.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

namespace paceline {

template <int Time, int Byte, int Flop>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(double value) : value_(value) {}

  // The number in the coherent unit: seconds, bytes, FLOPs and their products.
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  constexpr Quantity& operator/=(double divisor) {
    value_ /= divisor;
    return *this;
  }
  constexpr auto operator<=>(const Quantity&) const = default;

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{a.value_ + b.value_};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{a.value_ - b.value_};
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity{-a.value_}; }
  friend constexpr Quantity operator*(Quantity a, double b) { return Quantity{a.value_ * b}; }
  friend constexpr Quantity operator*(double a, Quantity b) { return Quantity{a * b.value_}; }
  friend constexpr Quantity operator/(Quantity a, double b) { return Quantity{a.value_ / b}; }

  // The number in the coherent unit; the type names the unit.
  friend std::ostream& operator<<(std::ostream& out, Quantity q) {
    out << q.value_;
    const auto unit = [&out](int exponent, const char* name) {
      if (exponent == 1) out << ' ' << name;
      if (exponent != 0 && exponent != 1) out << ' ' << name << '^' << exponent;
    };
    unit(Time, "s");
    unit(Byte, "B");
    unit(Flop, "FLOP");
    return out;
  }

 private:
  double value_ = 0;
};

namespace detail {
template <int T, int B, int F>
constexpr auto make_quantity(double value) {
  if constexpr (T == 0 && B == 0 && F == 0) {
    return value;
  } else {
    return Quantity<T, B, F>{value};
  }
}
}  // namespace detail

template <int T1, int B1, int F1, int T2, int B2, int F2>
constexpr auto operator*(Quantity<T1, B1, F1> a, Quantity<T2, B2, F2> b) {
  return detail::make_quantity<T1 + T2, B1 + B2, F1 + F2>(a.value() * b.value());
}
template <int T1, int B1, int F1, int T2, int B2, int F2>
constexpr auto operator/(Quantity<T1, B1, F1> a, Quantity<T2, B2, F2> b) {
  return detail::make_quantity<T1 - T2, B1 - B2, F1 - F2>(a.value() / b.value());
}
template <int T, int B, int F>
constexpr auto operator/(double a, Quantity<T, B, F> b) {
  return detail::make_quantity<-T, -B, -F>(a / b.value());
}

using Seconds = Quantity<1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using SecondsPerByte = Quantity<1, -1, 0>;
using Flops = Quantity<0, 0, 1>;
using FlopsPerSecond = Quantity<-1, 0, 1>;
using PerSecond = Quantity<-1, 0, 0>;

namespace literals {
consteval Seconds operator""_s(long double v) {
  return Seconds{static_cast<double>(v)};
}
consteval Seconds operator""_s(unsigned long long v) {
  return Seconds{static_cast<double>(v)};
}
consteval Seconds operator""_ms(long double v) {
  return Seconds{static_cast<double>(v) * 1e-3};
}
consteval Seconds operator""_ms(unsigned long long v) {
  return Seconds{static_cast<double>(v) * 1e-3};
}
consteval Seconds operator""_us(long double v) {
  return Seconds{static_cast<double>(v) * 1e-6};
}
consteval Seconds operator""_us(unsigned long long v) {
  return Seconds{static_cast<double>(v) * 1e-6};
}
consteval Bytes operator""_B(unsigned long long v) {
  return Bytes{static_cast<double>(v)};
}
consteval Bytes operator""_KiB(unsigned long long v) {
  return Bytes{static_cast<double>(v) * 1024};
}
consteval Bytes operator""_MiB(unsigned long long v) {
  return Bytes{static_cast<double>(v) * 1024 * 1024};
}
consteval BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9};
}
consteval BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9};
}
}  // namespace literals

}  // namespace paceline
