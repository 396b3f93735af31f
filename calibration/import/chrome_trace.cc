// Tests: tests/calibration/import_kineto_test.cc, tests/calibration/import_horovod_test.cc.
#include "calibration/import/chrome_trace.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/error.h"
#include "models/base/place_in.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Json = nlohmann::json;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_same_key(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

constexpr double longest_us = 1e18;
constexpr double largest_size = 1e12;

// Where the parser is. Each array and object that is open has a place, which follows from the place
// around it and the key before it. What means nothing to us is skipped with all that is in it.
enum class Place {
  top,        // outside of everything
  document,   // the object with "traceEvents"
  events,     // the array of events
  event,      // one of its objects
  arguments,  // the object "args" of an event
  sizes,      // the array "Input Dims" of the arguments
  shape,      // one of its arrays
  concrete,   // the array "Concrete Inputs" of the arguments
};

// Follows the parser.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(const std::function<void(TraceEvent&&)>& sink, TraceEnd& end) : sink_(sink), end_(end) {}

  bool null() override { return scalar({}, std::nullopt); }
  bool boolean(bool value) override { return scalar({}, value ? 1.0 : 0.0); }
  bool number_integer(number_integer_t value) override {
    return scalar(std::to_string(value), static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar(std::to_string(value), static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return scalar(text, value);
  }
  bool string(string_t& value) override { return scalar(std::move(value), std::nullopt); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (skipped_ > 0) return skip();
    switch (place()) {
      case Place::top:
        return enter(Place::document);
      case Place::events:
        event_ = TraceEvent{};
        return enter(Place::event);
      case Place::event:
        return key_ == "args" ? enter(Place::arguments) : skip();
      case Place::sizes:
        return fail("an input that is an object, in \"Input Dims\"");
      case Place::shape:
        return fail("a size that is an object, in \"Input Dims\"");
      case Place::concrete:
        return fail("an input that is an object, in \"Concrete Inputs\"");
      case Place::document:
      case Place::arguments:
        break;
    }
    return skip();
  }
  bool key(string_t& value) override {
    if (skipped_ == 0) key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    if (skipped_ > 0) return leave_skipped();
    if (place() == Place::event) {
      ++end_.events;
      sink_(std::move(event_));
    }
    return leave();
  }
  bool start_array(std::size_t) override {
    if (skipped_ > 0) return skip();
    switch (place()) {
      case Place::top:
        found_ = true;
        return enter(Place::events);
      case Place::document:
        if (key_ != "traceEvents") return skip();
        found_ = true;
        return enter(Place::events);
      case Place::events:
        return fail("an event that is no object");
      case Place::arguments:
        if (key_ == "Input Dims") {
          event_.input_sizes.clear();
          return enter(Place::sizes);
        }
        if (key_ == "Concrete Inputs") {
          event_.concrete_inputs.clear();
          return enter(Place::concrete);
        }
        return skip();
      case Place::sizes:
        event_.input_sizes.emplace_back();
        return enter(Place::shape);
      case Place::shape:  // of the tensors of a list, which are no input of their own
        return skip();
      case Place::concrete:
        event_.concrete_inputs.emplace_back();
        return skip();
      case Place::event:
        break;
    }
    return skip();
  }
  bool end_array() override { return skipped_ > 0 ? leave_skipped() : leave(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    position_ = position;
    return false;
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool open() const { return !places_.empty(); }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] Place place() const { return places_.empty() ? Place::top : places_.back(); }

  bool enter(Place place) {
    places_.push_back(place);
    return true;
  }
  bool leave() {
    places_.pop_back();
    return true;
  }
  bool skip() {
    ++skipped_;
    return true;
  }
  bool leave_skipped() {
    --skipped_;
    return true;
  }

  bool fail(const char* problem) {
    problem_ = problem;
    return false;
  }

  bool scalar(std::string text, std::optional<double> number) {
    if (skipped_ > 0) return true;
    switch (place()) {
      case Place::top:
        break;
      case Place::document:
        if (key_ == "schemaVersion") end_.schema_version = number;
        break;
      case Place::events:
        return fail("an event that is no object");
      case Place::event:
        return field(std::move(text), number);
      case Place::arguments:
        event_.arguments.push_back({std::move(key_), std::move(text), number});
        key_.clear();
        break;
      case Place::sizes:
        event_.input_sizes.emplace_back();
        break;
      case Place::shape:
        if (!number || *number < 0 || *number > largest_size)
          return fail("a size that is no number from 0 to 1e12, in \"Input Dims\"");
        event_.input_sizes.back().push_back(static_cast<std::int64_t>(*number));
        break;
      case Place::concrete:
        event_.concrete_inputs.push_back(std::move(text));
        break;
    }
    return true;
  }

  bool field(std::string text, std::optional<double> number) {
    if (key_ == "ph") {
      event_.phase = text.size() == 1 ? text[0] : '?';
    } else if (key_ == "name") {
      event_.name = std::move(text);
    } else if (key_ == "cat") {
      event_.category = std::move(text);
    } else if (key_ == "pid") {
      event_.pid = std::move(text);
    } else if (key_ == "tid") {
      event_.tid = std::move(text);
    } else if (key_ == "ts" || key_ == "dur") {
      if (!number || *number < 0 || *number > longest_us)
        return fail("a time that is no number from 0 on");
      (key_ == "ts" ? event_.begin_us : event_.duration_us) = *number;
    }
    return true;
  }

  const std::function<void(TraceEvent&&)>& sink_;
  TraceEnd& end_;
  TraceEvent event_;
  std::vector<Place> places_;  // of what is open and not skipped; an element of `shape` is there
                               // only while event_.input_sizes has the shape that it fills
  std::size_t skipped_ = 0;  // counts what is open and skipped, all of it inside of the last place
  std::string key_;          // the last of the object that is open
  std::string problem_;
  std::size_t position_ = 0;
  bool found_ = false;
};

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

// Mends what tools forget to escape in strings: control characters (in names that torch.profiler
// takes from generated code) become blanks, and backslashes that begin no escape (in paths of
// Windows) become slashes. The result is as long as the text, so that positions stay.
class Mended {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  // Keeps in `reached` how far the text is read.
  Mended(const char* at, const char* end, const char*& reached)
      : at_(at), end_(end), reached_(&reached) {}

  char operator*() const {
    if (!in_string_) return *at_;
    if (static_cast<unsigned char>(*at_) < 0x20) return ' ';
    return *at_ == '\\' && !is_escaped_ && !begins_escape() ? '/' : *at_;
  }
  Mended& operator++() {
    if (*at_ == '"' && !is_escaped_) in_string_ = !in_string_;
    is_escaped_ = in_string_ && !is_escaped_ && *at_ == '\\' && begins_escape();
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const Mended& other) const { return at_ == other.at_; }

 private:
  [[nodiscard]] bool begins_escape() const {
    if (end_ - at_ < 2) return false;
    if (at_[1] == 'u') return end_ - at_ >= 6 && std::all_of(at_ + 2, at_ + 6, is_hex);
    return std::string_view("\"\\/bfnrt").find(at_[1]) != std::string_view::npos;
  }

  const char* at_;
  const char* end_;
  const char** reached_;
  bool in_string_ = false;
  bool is_escaped_ = false;  // by a backslash before
};

}  // namespace

const TraceArgument* TraceEvent::argument(std::string_view key) const {
  for (const TraceArgument& argument : arguments) {
    if (is_same_key(argument.key, key)) return &argument;
  }
  return nullptr;
}

TraceEnd read_chrome_trace(std::string_view text, const std::string& file, EarlyEnd early_end,
                           const std::function<void(TraceEvent&&)>& sink) {
  if (text.starts_with("\x1f\x8b"))
    throw InputError({file}, "this is compressed by gzip", "unpack it first: gunzip FILE");
  TraceEnd end;
  Handler handler(sink, end);
  const char* const text_end = text.data() + text.size();
  const char* reached = text.data();
  const bool whole = Json::sax_parse(Mended(text.data(), text_end, reached),
                                     Mended(text_end, text_end, reached), &handler);
  if (!handler.problem().empty()) {
    const auto read = to_size(reached - text.data());
    throw InputError(place_in(file, text, std::max<std::size_t>(read, 1) - 1),
                     "event " + std::to_string(end.events + 1) + ": " + handler.problem(),
                     "give a trace as the tool writes it");
  }
  if (!whole) {
    const bool at_end = handler.position() >= text.size() && handler.open() && handler.found();
    if (at_end && early_end == EarlyEnd::taken) {
      end.early = true;
      return end;
    }
    const std::size_t offset = handler.position() == 0 ? 0 : handler.position() - 1;
    throw InputError(place_in(file, text, offset),
                     at_end ? "the JSON ends early" : "this is not JSON",
                     "give a trace as the tool writes it");
  }
  if (!handler.found())
    throw InputError({file}, "there are no events",
                     "a trace is an array of events, or an object with \"traceEvents\"");
  return end;
}

}  // namespace paceline::calibration
