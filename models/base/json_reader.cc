// Tests: tests/models/json_reader_test.cc.
#include "models/base/json_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "models/base/names.h"
#include "models/base/place_in.h"

namespace paceline {
namespace {

using Parsed = nlohmann::json;

constexpr int deepest = 16;  // what we write nests 6 deep

// An iterator over a text that tells how far it has come: nlohmann tells its callback no place.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// The keys of the objects that are open, from the outermost in.
class OpenKeys {
 public:
  // Whether the object has this key already.
  bool repeats(Parsed::parse_event_t event, const Parsed& value) {
    if (event == Parsed::parse_event_t::object_start) keys_.emplace_back();
    if (event == Parsed::parse_event_t::object_end) keys_.pop_back();
    if (event != Parsed::parse_event_t::key) return false;
    return !keys_.back().insert(value.get_ref<const std::string&>()).second;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
}

Parsed parse_json(std::string_view text, const std::string& file, const std::string& remedy) {
  const char* const begin = text.data();
  const char* reached = begin;
  OpenKeys keys;
  const auto check = [&](int depth, Parsed::parse_event_t event, const Parsed& value) {
    const auto place = [&] {
      const auto read = static_cast<std::size_t>(reached - begin);
      return place_in(file, text, std::max<std::size_t>(read, 1) - 1);
    };
    // nlohmann parses without recursion; what nests deeply costs memory, though.
    const bool opens =
        event == Parsed::parse_event_t::object_start || event == Parsed::parse_event_t::array_start;
    if (opens && depth >= deepest)
      throw InputError(place(), fmt::format("this nests more than {} deep", deepest), remedy);
    if (keys.repeats(event, value))
      throw InputError(
          place(), fmt::format("the key {} is there twice", in_quotes(value.get<std::string>())),
          "leave one out");
    return true;
  };
  try {
    return Parsed::parse(Cursor(begin, &reached), Cursor(begin + text.size(), &reached), check);
  } catch (const Parsed::parse_error& error) {
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    throw InputError(place_in(file, text, offset), "this is not JSON", remedy);
  } catch (const Parsed::out_of_range&) {
    throw InputError({file}, "a number is too large", "write finite numbers");
  }
}

}  // namespace

void JsonValue::fail(const std::string& problem, const std::string& remedy) const {
  throw InputError({file_}, (parent_ == nullptr ? what_ : place()) + ": " + problem, remedy);
}

bool JsonValue::is_number() const {
  return json_.is_number();
}

bool JsonValue::is_object() const {
  return json_.is_object();
}

bool JsonValue::has(const char* key) const {
  return json_.is_object() && json_.contains(key);
}

bool JsonValue::has_value(const char* key) const {
  return has(key) && !json_[key].is_null();
}

JsonValue JsonValue::at(const char* key) const {
  if (!json_.is_object()) fail("this is no object", "write {...}");
  const auto found = json_.find(key);
  if (found == json_.end())
    fail(fmt::format("'{}' is missing", key), fmt::format("add \"{}\"", key));
  return {*found, *this, key, 0};
}

void JsonValue::check_keys(const std::vector<std::string>& keys) const {
  if (!json_.is_object()) fail("this is no object", "write {...}");
  for (const auto& [key, value] : json_.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const InputError error = unknown_name("key", key, keys);
    fail(error.problem(), error.remedy());
  }
}

void JsonValue::check_schema(std::string_view schema, std::string_view noun) const {
  const JsonValue value = at("schema");
  const std::string found = value.text();
  if (found == schema) return;
  value.fail(fmt::format("{} is not what this version reads", in_quotes(found)),
             fmt::format("give a {} of schema {}", noun, schema));
}

std::size_t JsonValue::size(std::size_t largest) const {
  if (!json_.is_array()) fail("this is no array", "write [...]");
  if (json_.size() > largest)
    fail(fmt::format("these are {}", json_.size()), fmt::format("at most {} are read", largest));
  return json_.size();
}

std::string JsonValue::text(std::size_t longest) const {
  if (!json_.is_string()) fail("this is no text", "write \"...\"");
  const auto& value = json_.get_ref<const std::string&>();
  if (value.size() > longest)
    fail(fmt::format("this text is longer than {} bytes", longest), "give a shorter one");
  if (std::any_of(value.begin(), value.end(), is_control))
    fail("this text has control characters", "leave them out");
  return value;
}

bool JsonValue::flag() const {
  if (!json_.is_boolean()) fail("this is neither true nor false", "write true or false");
  return json_.get<bool>();
}

double JsonValue::number() const {
  if (!json_.is_number() || !std::isfinite(json_.get<double>()))
    fail("this is no number", "write a finite number");
  return json_.get<double>();
}

double JsonValue::number(double low, double high) const {
  const double value = number();
  if (value < low || value > high)
    fail(fmt::format("{} does not fit", value),
         fmt::format("write a number from {} to {}", low, high));
  return value;
}

std::int64_t JsonValue::whole(std::int64_t low, std::int64_t high) const {
  if (low > high) fail(what_ + " has nothing of that kind", "");
  const double value = number();
  if (value != std::floor(value) || value < static_cast<double>(low) ||
      value > static_cast<double>(high))
    fail(fmt::format("{} is not a whole number from {} to {}", value, low, high), "");
  return static_cast<std::int64_t>(value);
}

JsonValue JsonValue::element(std::size_t index) const {
  return {json_[index], *this, nullptr, index};
}

std::string JsonValue::place() const {
  if (parent_ == nullptr) return "";
  const std::string above = parent_->place();
  if (key_ == nullptr) return fmt::format("{}[{}]", above, index_);
  return above.empty() ? std::string(key_) : fmt::format("{}.{}", above, key_);
}

JsonDocument::JsonDocument(std::string_view text, const std::string& file, const std::string& what,
                           const std::string& remedy)
    : file_(file),
      what_(what),
      json_(std::make_unique<const Parsed>(parse_json(text, file, remedy))) {}

JsonDocument::~JsonDocument() = default;

JsonValue JsonDocument::root() const {
  return {*json_, file_, what_};
}

}  // namespace paceline
