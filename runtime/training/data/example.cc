#include "runtime/training/data/example.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "models/base/error.h"
#include "runtime/training/data/example.pb.h"

namespace paceline::runtime {
namespace {

InputError wrong(const std::string& name, const std::string& problem, const std::string& remedy) {
  return InputError(InputPlace{.file = name}, problem, remedy);
}

// Where a key is there more than once, the last one counts, as in a map of protocol buffers.
const tf::Feature* feature(const tf::Example& example, const char* key) {
  const tf::Feature* found = nullptr;
  for (const tf::Entry& entry : example.features().feature()) {
    if (entry.key() == key) found = &entry.value();
  }
  return found;
}

// The one byte string of a key, or null.
const std::string* bytes_of(const tf::Example& example, const char* key) {
  const tf::Feature* const found = feature(example, key);
  return found == nullptr || found->bytes_list().value_size() != 1 ? nullptr
                                                                   : &found->bytes_list().value(0);
}

void check_format(const tf::Example& example, const std::string& name) {
  const std::string* const format = bytes_of(example, "image/format");
  if (format == nullptr) return;
  std::string lower = *format;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower != "jpeg" && lower != "jpg")
    throw wrong(name, "image/format is " + in_quotes(*format), "images must be JPEG");
}

std::int32_t label_of(const tf::Example& example, int classes, const std::string& name) {
  const tf::Feature* const found = feature(example, "image/class/label");
  if (found == nullptr || found->int64_list().value_size() != 1)
    throw wrong(name, "has no image/class/label", "it must be one int64");
  const bool from_one = feature(example, "image/class/text") != nullptr ||
                        feature(example, "image/class/synset") != nullptr;
  const std::int64_t first = from_one ? 1 : 0;
  const std::int64_t label = found->int64_list().value(0);
  if (label < first || label >= first + classes)
    throw wrong(name, fmt::format("image/class/label is {}", label),
                fmt::format("the network tells {} classes apart, {} to {}{}", classes, first,
                            first + classes - 1,
                            from_one ? " as image/class/text or synset is there, too" : ""));
  return static_cast<std::int32_t>(label - first);
}

}  // namespace

struct ExampleReader::Message {
  tf::Example example;
};

ExampleReader::ExampleReader() : message_(std::make_unique<Message>()) {}
ExampleReader::~ExampleReader() = default;

LabelledJpeg ExampleReader::parse(std::span<const std::uint8_t> record, int classes,
                                  const std::string& name) {
  tf::Example& example = message_->example;
  if (record.size() > std::size_t{std::numeric_limits<int>::max()} ||
      !example.ParseFromArray(record.data(), static_cast<int>(record.size())))
    throw wrong(name, "is no tf.Example", "write images with image/encoded and image/class/label");
  const std::string* const jpeg = bytes_of(example, "image/encoded");
  if (jpeg == nullptr)
    throw wrong(name, "has no image/encoded", "it must be the bytes of one JPEG file");
  check_format(example, name);
  return {{reinterpret_cast<const std::uint8_t*>(jpeg->data()), jpeg->size()},
          label_of(example, classes, name)};
}

}  // namespace paceline::runtime
