#include "runtime/training/data/text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "models/base/random.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using models::Shape;
using test::TemporaryFolder;

std::string written(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder / "text";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

DatasetRequest request_of(const std::string& path, std::int64_t elements) {
  return {.source = "text:" + path, .sample = Shape::sequence(elements), .classes = 256};
}

// Tokens are the bytes of a part, each once and in order, and the label of each is the byte behind it.
TEST(Text, IsReadInOrderAndEachByteOnce) {
  const TemporaryFolder folder;
  Random random(7);
  for (int trial = 0; trial < 50; ++trial) {
    const auto elements = static_cast<std::int64_t>(1 + random.below(40));
    std::string text(static_cast<std::size_t>(10 * (elements + 1)) + random.below(500), ' ');
    for (char& byte : text) byte = static_cast<char>(random.below(256));
    const auto dataset = open_dataset(request_of(written(folder, text), elements));
    ASSERT_EQ(dataset->labels(), elements);
    std::size_t begin = 0;
    std::size_t end = text.size() - text.size() / 10;
    for (const Part part : {Part::training, Part::test}) {
      ASSERT_GE(dataset->size(part), 1);
      ASSERT_EQ(dataset->size(part), static_cast<std::int64_t>(end - begin - 1) / elements);
      std::vector<float> tokens(static_cast<std::size_t>(elements));
      std::vector<std::int32_t> labels(tokens.size());
      for (std::int64_t i = 0; i < dataset->size(part); ++i) {
        dataset->read(part, i, {}, 0, tokens, labels);
        for (std::size_t k = 0; k < tokens.size(); ++k) {
          const std::size_t at = begin + static_cast<std::size_t>(i * elements) + k;
          ASSERT_EQ(tokens[k], static_cast<unsigned char>(text[at]));
          ASSERT_EQ(labels[k], static_cast<unsigned char>(text[at + 1]));
        }
      }
      begin = end;
      end = text.size();
    }
  }
}

TEST(Text, OfTheWrongKindIsRefused) {
  const TemporaryFolder folder;
  const std::string path = written(folder, std::string(200, 'a'));
  const auto refused = [](const DatasetRequest& request) {
    return test::error_of([&] { static_cast<void>(open_dataset(request)); });
  };
  EXPECT_EQ(refused(request_of(path, 19)), "no error");
  EXPECT_NE(refused(request_of(path, 20)).find("has 200 bytes, and sequences take 20"),
            std::string::npos);
  DatasetRequest images = request_of(path, 4);
  images.sample = Shape::image(1, 2, 2);
  EXPECT_NE(refused(images).find("the network takes an image 1x2x2"), std::string::npos);
  DatasetRequest few = request_of(path, 4);
  few.classes = 255;
  EXPECT_NE(refused(few).find("tells only 255 apart"), std::string::npos);
  EXPECT_NE(refused(request_of(folder / "missing", 4)).find("missing"), std::string::npos);
}

// Three of four tokens or more are followed by their one successor.
TEST(SyntheticSequences, CanBeLearned) {
  const auto dataset =
      open_dataset({.source = "synthetic:50", .sample = Shape::sequence(100), .classes = 1000});
  std::vector<float> tokens(100);
  std::vector<std::int32_t> labels(100);
  std::set<std::pair<float, std::int32_t>> pairs;
  std::set<float> distinct;
  for (std::int64_t i = 0; i < 50; ++i) {
    dataset->read(Part::training, i, {}, 0, tokens, labels);
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      ASSERT_TRUE(labels[k] >= 0 && labels[k] < 1000);
      if (k + 1 < tokens.size()) EXPECT_EQ(tokens[k + 1], static_cast<float>(labels[k]));
      pairs.emplace(tokens[k], labels[k]);
      distinct.insert(tokens[k]);
    }
  }
  EXPECT_LT(pairs.size(), distinct.size() + 5000 / 3);
}

}  // namespace
}  // namespace paceline::runtime
