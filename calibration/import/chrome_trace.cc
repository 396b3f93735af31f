// Tests: tests/calibration/import_kineto_test.cc, tests/calibration/import_horovod_test.cc.
#include "calibration/import/chrome_trace.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/error.h"
#include "models/base/place_in.h"

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

// Follows the parser. `depth_` counts the open arrays and objects; events are the objects in the
// array that is open at depth `events_`.
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
    ++depth_;
    if (events_ > 0 && depth_ == events_ + 1) event_ = TraceEvent{};
    in_arguments_ = in_event() && depth_ == events_ + 2 && key_ == "args";
    return true;
  }
  bool key(string_t& value) override {
    if (in_arguments_ && depth_ == events_ + 2) {
      argument_ = std::move(value);
    } else if (depth_ == 1 || (in_event() && depth_ == events_ + 1)) {
      key_ = std::move(value);
    }
    return true;
  }
  bool end_object() override {
    if (in_event() && depth_ == events_ + 1) {
      ++end_.events;
      sink_(std::move(event_));
    }
    if (depth_ == events_ + 2) in_arguments_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (events_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      events_ = depth_;
      found_ = true;
    } else if (events_ > 0 && depth_ == events_ + 1) {
      return fail("an event that is no object");
    }
    if (in_arguments_ && depth_ == events_ + 3) {
      list_ = argument_ == "Input Dims"        ? List::sizes
              : argument_ == "Concrete Inputs" ? List::concrete
                                               : List::none;
    } else if (depth_ == events_ + 4) {
      next_input();
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == events_ + 3) list_ = List::none;
    if (depth_ == events_) events_ = 0;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    position_ = position;
    return false;
  }

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool open() const { return depth_ > 0; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] bool in_event() const { return events_ > 0 && depth_ > events_; }

  bool fail(const char* problem) {
    problem_ = problem;
    return false;
  }

  // Makes room for the next input of the list that is open.
  void next_input() {
    if (list_ == List::sizes) event_.input_sizes.emplace_back();
    if (list_ == List::concrete) event_.concrete_inputs.emplace_back();
  }

  void take_input(const std::string& text, std::optional<double> number) {
    constexpr double largest = 1e12;
    if (depth_ == events_ + 3) {
      next_input();
      if (list_ == List::concrete) event_.concrete_inputs.back() = text;
    } else if (list_ == List::sizes && depth_ == events_ + 4 && number && *number >= 0 &&
               *number <= largest) {
      event_.input_sizes.back().push_back(static_cast<std::int64_t>(*number));
    }
  }

  bool scalar(std::string text, std::optional<double> number) {
    if (list_ != List::none) {
      take_input(text, number);
      return true;
    }
    if (in_arguments_ && depth_ == events_ + 2) {
      event_.arguments.push_back({std::move(argument_), std::move(text), number});
      argument_.clear();
      return true;
    }
    if (in_event() && depth_ == events_ + 1) return field(std::move(text), number);
    if (events_ > 0 && depth_ == events_) return fail("an event that is no object");
    if (depth_ == 1 && key_ == "schemaVersion") end_.schema_version = number;
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
  std::string key_;
  std::string argument_;
  std::string problem_;
  std::size_t depth_ = 0;
  std::size_t events_ = 0;  // 0: not in the array of events
  std::size_t position_ = 0;
  enum class List { none, sizes, concrete };
  List list_ = List::none;  // of an event's arguments, that is open
  bool in_arguments_ = false;
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

  Mended(const char* at, const char* end) : at_(at), end_(end) {}

  char operator*() const {
    if (!in_string_) return *at_;
    if (static_cast<unsigned char>(*at_) < 0x20) return ' ';
    return *at_ == '\\' && !is_escaped_ && !begins_escape() ? '/' : *at_;
  }
  Mended& operator++() {
    if (*at_ == '"' && !is_escaped_) in_string_ = !in_string_;
    is_escaped_ = in_string_ && !is_escaped_ && *at_ == '\\' && begins_escape();
    ++at_;
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
  const bool whole =
      Json::sax_parse(Mended(text.data(), text_end), Mended(text_end, text_end), &handler);
  if (!handler.problem().empty())
    throw InputError({file}, "event " + std::to_string(end.events + 1) + ": " + handler.problem(),
                     "give a trace as the tool writes it");
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
