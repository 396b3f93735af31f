// Reading JSON that may be damaged or hostile: every fault becomes one InputError with the file and
// its line, or the place of the value in the document: "traceEvents[7].args.iteration".
//
// Private to .cc files. It is for documents that fit in memory; the traces of other tools are parsed
// as a stream (calibration/import/chrome_trace.h). nlohmann parses, in json_reader.cc alone.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"

namespace paceline {

// A value of the document. Documents have many values, so the text of a place is made only for an
// error. A value must therefore outlive those that at() makes of it; in a chain of calls it does.
class JsonValue {
 public:
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_object() const;
  // Whether the key is there, with any value or null.
  [[nodiscard]] bool has(const char* key) const;
  // Whether the key is there with a value other than null.
  [[nodiscard]] bool has_value(const char* key) const;
  // The value of a key. Fails unless the key is there.
  [[nodiscard]] JsonValue at(const char* key) const;
  // Fails unless this is an object without other keys. The error suggests the nearest key.
  void check_keys(const std::vector<std::string>& keys) const;
  // Fails unless the value of the key "schema" is this text. `noun` says what the document is.
  void check_schema(std::string_view schema, std::string_view noun) const;

  [[nodiscard]] std::size_t size(
      std::size_t largest = std::numeric_limits<std::size_t>::max()) const;
  // Calls read(element) for each element of an array.
  template <class F>
  void for_each(F read, std::size_t largest = std::numeric_limits<std::size_t>::max()) const {
    const std::size_t elements = size(largest);
    for (std::size_t i = 0; i < elements; ++i) read(element(i));
  }

  // A text without control characters, which could change a terminal. Fails if it has some.
  [[nodiscard]] std::string text(
      std::size_t longest = std::numeric_limits<std::size_t>::max()) const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] double number(double low, double high) const;
  // A whole number. If high < low, the error says that there is nothing to choose from.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high) const;
  // The same, of counts.
  [[nodiscard]] int count(int low, int high) const { return static_cast<int>(whole(low, high)); }
  // parse(text); an InputError gets the place of the value.
  template <class F>
  [[nodiscard]] auto named(F parse) const {
    const std::string name = text();
    try {
      return parse(name);
    } catch (const InputError& error) {
      fail(error.problem(), error.remedy());
    }
  }

 private:
  friend class JsonDocument;

  JsonValue(const nlohmann::json& json, const std::string& file, const std::string& what)
      : json_(json), file_(file), what_(what) {}
  JsonValue(const nlohmann::json& json, const JsonValue& parent, const char* key, std::size_t index)
      : json_(json),
        file_(parent.file_),
        what_(parent.what_),
        parent_(&parent),
        key_(key),
        index_(index) {}

  [[nodiscard]] JsonValue element(std::size_t index) const;
  [[nodiscard]] std::string place() const;

  const nlohmann::json& json_;
  const std::string& file_;
  const std::string& what_;
  const JsonValue* parent_ = nullptr;  // null for the document itself
  const char* key_ = nullptr;          // null for an element of an array
  std::size_t index_ = 0;
};

class JsonDocument {
 public:
  // Parses the text. Errors name the file, and the document as `what` does: "the profile". Throws
  // InputError if the text is no JSON, nests more than 16 deep, has a number that no double holds, or
  // an object with a key twice. `remedy` says what would be right.
  JsonDocument(std::string_view text, const std::string& file, const std::string& what,
               const std::string& remedy);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // The outermost value. The document must outlive it.
  [[nodiscard]] JsonValue root() const;

 private:
  std::string file_;
  std::string what_;
  std::unique_ptr<const nlohmann::json> json_;
};

}  // namespace paceline
