// tf.Example records of labelled images, as TensorFlow's scripts write ImageNet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace paceline::runtime {

struct LabelledJpeg {
  std::span<const std::uint8_t> jpeg;
  std::int32_t label = 0;  // from 0
};

// Parses one record after the other in the same memory. One thread at a time.
class ExampleReader {
 public:
  ExampleReader();
  ExampleReader(const ExampleReader&) = delete;
  ExampleReader& operator=(const ExampleReader&) = delete;
  ~ExampleReader();

  // Keys: image/encoded (bytes), image/class/label (int64), and image/format (bytes, optional:
  // "JPEG" or "jpg" in any case). ImageNet's scripts count labels from 1 and also write
  // image/class/text or image/class/synset; a record with one of these counts from 1, any other
  // from 0. The result is valid until the next call. Throws InputError, with `name` for its place,
  // if the bytes are no tf.Example, a key is missing, the image is no JPEG, or the label is none of
  // `classes`.
  [[nodiscard]] LabelledJpeg parse(std::span<const std::uint8_t> record, int classes,
                                   const std::string& name);

 private:
  struct Message;
  std::unique_ptr<Message> message_;
};

}  // namespace paceline::runtime
