// Tests: tests/runtime/data_text_test.cc.
#include "runtime/training/data/text.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/data/gzip.h"

namespace paceline::runtime {
namespace {

constexpr int byte_values = 256;
constexpr std::size_t most_bytes = std::size_t{4} << 30U;
constexpr std::int64_t least_samples = 10;

class TextDataset : public Dataset {
 public:
  TextDataset(const DatasetRequest& request, ByteVector bytes)
      : request_(request), bytes_(std::move(bytes)) {
    const auto test = static_cast<std::int64_t>(bytes_.size() / 10);
    first_test_ = static_cast<std::int64_t>(bytes_.size()) - test;
  }

  [[nodiscard]] std::string name() const override { return request_.source; }
  [[nodiscard]] models::Shape sample() const override { return request_.sample; }
  [[nodiscard]] int classes() const override { return byte_values; }
  [[nodiscard]] int labels() const override { return static_cast<int>(elements()); }
  // The last byte of a part is a label only.
  [[nodiscard]] std::int64_t size(Part part) const override {
    const std::int64_t bytes = part == Part::training
                                   ? first_test_
                                   : static_cast<std::int64_t>(bytes_.size()) - first_test_;
    return std::max<std::int64_t>(0, bytes - 1) / elements();
  }

  void read(Part part, std::int64_t index, const Augmentation& /*augmentation*/,
            std::uint64_t /*seed*/, std::span<float> tokens,
            std::span<std::int32_t> labels) const override {
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    const std::int64_t begin = (part == Part::training ? 0 : first_test_) + index * elements();
    const std::uint8_t* const from = bytes_.data() + begin;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = from[i];
      labels[i] = from[i + 1];
    }
  }

 private:
  [[nodiscard]] std::int64_t elements() const { return request_.sample.height; }

  DatasetRequest request_;
  ByteVector bytes_;
  std::int64_t first_test_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> open_text(const DatasetRequest& request, const std::string& file) {
  const models::Shape& sample = request.sample;
  if (!sample.is_sequence || sample.channels != 1)
    throw InputError(InputPlace{.file = file},
                     fmt::format("is text, but the network takes {}", models::described(sample)),
                     "choose a network that reads tokens, such as gpt2-tiny");
  if (request.classes < byte_values)
    throw InputError(InputPlace{.file = file},
                     fmt::format("has bytes of {} values, but the network tells only {} apart",
                                 byte_values, request.classes),
                     "choose a network with a vocabulary of 256 or more");
  ByteVector bytes = read_file(file, most_bytes);
  const std::int64_t least = least_samples * (sample.height + 1);
  if (static_cast<std::int64_t>(bytes.size()) < least)
    throw InputError(
        InputPlace{.file = file},
        fmt::format("has {} bytes, and sequences take {}", bytes.size(), sample.height),
        fmt::format("give a text of {} bytes or more, or a smaller --sequence", least));
  return std::make_unique<TextDataset>(request, std::move(bytes));
}

}  // namespace paceline::runtime
