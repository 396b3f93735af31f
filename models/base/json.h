// A JSON document that is to be written, as a value. nlohmann prints it (json.cc), so that writers
// compile none of that; json_reader.h reads documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace paceline {

// Null, a truth value, a number, a text, an array, or an object, whose keys keep the order in which
// they were added. Conversions are implicit, so that a document is written down as it looks:
// Json{{"name", "ring"}, {"ranks", 8}}.
class Json {
 public:
  struct Member;  // a key and its value

  Json() noexcept;
  Json(std::nullptr_t) noexcept;
  Json(bool truth);
  Json(int number);
  Json(std::int64_t number);
  Json(std::uint64_t number);
  Json(double number);  // printed as null unless it is finite, for JSON has no such numbers
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  // An array of these values.
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(value);
  }
  // An object of these members, whose keys differ.
  Json(std::initializer_list<Member> members);

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  // Without elements.
  [[nodiscard]] static Json array();
  // Without members.
  [[nodiscard]] static Json object();

  // The element that is added to an array.
  Json& push_back(Json element);
  // The value of a key of an object, which is added, with null, where it is not there. The reference
  // is good until a key is added. O(keys).
  Json& operator[](std::string_view key);
  // Adds the members of an object to this one. They replace those of the same key.
  void update(Json object);
  // Puts the keys of this object, and of all objects in it, in alphabetical order.
  void sort_keys();

  // The document as text, without a final newline: on lines that are indented by two blanks a
  // level, or all on one line.
  // Bytes that are no UTF-8 become U+FFFD.
  [[nodiscard]] std::string indented() const;
  [[nodiscard]] std::string in_one_line() const;

 private:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  class Printer;
  friend class JsonRecords;  // json_records.cc

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

struct Json::Member {
  std::string_view key;
  mutable Json value;  // mutable, because an initializer list would let it only be copied
};

}  // namespace paceline
