// Fields of a value that people name: an option of a command, a parameter of a query, a keyword of
// Python and a word of a published row are one field, which is stated once. Whoever reads or offers
// fields goes over their table, so that all of them have the same names, limits and messages.
#pragma once

#include <algorithm>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/error.h"

namespace paceline {

// What every reader must know of a field, whatever value it is of.
struct FieldLabel {
  std::string_view name;            // "server-machines": the option is --server-machines
  std::string_view takes = {};      // what stands for a value in help: "SIZE"; empty: it takes none
  std::string_view otherwise = {};  // what holds where it is not given, in help: "5 ms"
  std::string_view group = {};      // of help
  std::string_view help = {};
  std::string_view python = "str";  // the type of the keyword
  bool is_expert = false;           // seldom used, and left out of the short help
  std::string_view also = {};       // another option that says the same: "--micro-batch"

  // A field that takes no value is true where it is given.
  [[nodiscard]] bool is_flag() const { return takes.empty(); }
  // What stands for a value in help, with what holds otherwise: "TIME (5 ms)".
  [[nodiscard]] std::string shown() const {
    std::string text(takes);
    return otherwise.empty() ? text : text + " (" + std::string(otherwise) + ")";
  }
  // "--server-machines"
  [[nodiscard]] std::string option() const { return "--" + std::string(name); }
};

template <class Value>
struct Field : FieldLabel {
  // Reads the text of a value; a flag's text is empty. Throws InputError that does not name the field.
  std::function<void(Value& value, const std::string& text)> read = {};
  // Whether the value says something else than one in which the field is not given.
  std::function<bool(const Value& value)> is_given = {};
};

// Reads a text into the value. Throws InputError that names the option.
template <class Value>
void read_field(const Field<Value>& field, const std::string& text, Value& value) {
  try {
    field.read(value, text);
  } catch (const InputError& error) {
    throw error.at({field.option()});
  }
}

// The field of this name, or null.
template <class Fields>
auto find_field(Fields&& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &FieldLabel::name);
  return found == std::ranges::end(fields) ? nullptr : &*found;
}

// The same field of a value of which `part` is a member.
template <class Whole, class Part>
Field<Whole> field_of_part(const Field<Part>& field, Part Whole::*part) {
  return {
      field,
      [read = field.read, part](Whole& whole, const std::string& text) { read(whole.*part, text); },
      [is_given = field.is_given, part](const Whole& whole) { return is_given(whole.*part); }};
}

}  // namespace paceline
