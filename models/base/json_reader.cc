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
#include "models/base/to_size.h"

namespace paceline {
namespace {

using Parsed = nlohmann::json;

constexpr std::size_t deepest = 16;  // what we write nests 6 deep

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

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
}

// Refuses what Parsed::parse takes. Its callback would tell as much, but then each object that ends
// has it walk through the list around it.
class Checker : public nlohmann::json_sax<Parsed> {
 public:
  Checker(std::string_view text, const char* const& reached, const std::string& file,
          const std::string& remedy)
      : text_(text), reached_(reached), file_(file), remedy_(remedy) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second)
      throw InputError(place(), fmt::format("the key {} is there twice", in_quotes(name)),
                       "leave one out");
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (const auto* syntax = dynamic_cast<const Parsed::parse_error*>(&error)) {
      const std::size_t offset = syntax->byte == 0 ? 0 : syntax->byte - 1;
      throw InputError(place_in(file_, text_, offset), "this is not JSON", remedy_);
    }
    throw InputError({file_}, "a number is too large", "write finite numbers");
  }

 private:
  bool open() {
    // nlohmann parses without recursion; what nests deeply costs memory, though.
    if (keys_.size() >= deepest)
      throw InputError(place(), fmt::format("this nests more than {} deep", deepest), remedy_);
    keys_.emplace_back();
    return true;
  }

  bool close() {
    keys_.pop_back();
    return true;
  }

  InputPlace place() const {
    const auto read = to_size(reached_ - text_.data());
    return place_in(file_, text_, std::max<std::size_t>(read, 1) - 1);
  }

  std::string_view text_;
  const char* const& reached_;
  const std::string& file_;
  const std::string& remedy_;
  std::vector<std::set<std::string>> keys_;  // of what is open; of an array none
};

Parsed parse_json(std::string_view text, const std::string& file, const std::string& remedy) {
  const char* const begin = text.data();
  const char* reached = begin;
  Checker checker(text, reached, file, remedy);
  Parsed::sax_parse(Cursor(begin, &reached), Cursor(begin + text.size(), &reached), &checker);
  return Parsed::parse(text.begin(), text.end());
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
