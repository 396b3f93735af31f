#include "runtime/training/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <random>

#include "runtime/training/checkpoint_format.h"
#include "tests/runtime/training/checkpoint_samples.h"
#include "tests/support/error_of.h"
#include "tests/support/source_tree.h"

namespace paceline::runtime {
namespace {

using test::bytes_of_file;
using test::error_of;
using test::small_checkpoint;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Bytes = std::vector<std::byte>;

// Compares to the bit, NaNs included.
void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.job, b.job);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.batch, b.batch);
  EXPECT_EQ(a.iteration, b.iteration);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].name, b.arrays[i].name);
    const auto& x = a.arrays[i].values;
    const auto& y = b.arrays[i].values;
    ASSERT_EQ(x.size(), y.size());
    EXPECT_TRUE(x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
  }
}

Bytes small_bytes() {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", small_checkpoint());
  return bytes_of_file(folder / "c");
}

std::string error_in(const Bytes& bytes) {
  return error_of([&] { return parse_checkpoint(bytes, "c"); });
}

// A file of this header, with the right checksum, and `payload` bytes of 0.
Bytes sealed(const std::string& header, std::size_t payload = 0) {
  CheckpointStart start{};
  std::copy(checkpoint_magic.begin(), checkpoint_magic.end(), start.magic.begin());
  start.version = checkpoint_version;
  start.header_bytes = static_cast<std::uint32_t>(header.size());
  start.sum = header_sum(start, header);
  Bytes bytes(sizeof start + header.size() + payload);
  std::memcpy(bytes.data(), &start, sizeof start);
  std::memcpy(bytes.data() + sizeof start, header.data(), header.size());
  return bytes;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.job = "\"quotes\", \\ and ü";
  checkpoint.loss_scale.fixed = true;
  checkpoint.loss_scale.scale = 0.1;
  checkpoint.arrays[0].values.push_back(std::bit_cast<float>(0x7fa00001U));  // a signalling NaN
  write_checkpoint(folder / "c", checkpoint);
  expect_same(read_checkpoint(folder / "c"), checkpoint);
  EXPECT_THAT(folder.names(), ElementsAre("c"));
}

TEST(Checkpoint, OfManyPiecesComesBackAsItWas) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = test::large_checkpoint(7, 0);
  std::mt19937 generator(1);
  for (CheckpointArray& array : checkpoint.arrays) {
    array.values.resize(checkpoint_piece + 12345);
    for (float& value : array.values) value = static_cast<float>(generator());
  }
  write_checkpoint(folder / "c", checkpoint);
  expect_same(read_checkpoint(folder / "c"), checkpoint);
}

TEST(Checkpoint, OfAnyContentComesBackAsItWas) {
  const TemporaryFolder folder;
  rc::check("write, then read", [&] {
    const auto count = [](auto most) { return *rc::gen::inRange<std::int64_t>(0, most); };
    Checkpoint checkpoint{.job = "job",
                          .epoch = count(1000),
                          .batch = count(1000),
                          .iteration = count(std::numeric_limits<std::int64_t>::max())};
    for (int i = 0; i < count(5); ++i) {
      std::vector<float> values;
      for (const auto bits : *rc::gen::arbitrary<std::vector<std::uint32_t>>())
        values.push_back(std::bit_cast<float>(bits));
      checkpoint.arrays.push_back({"array " + std::to_string(i), values});
    }
    write_checkpoint(folder / "c", checkpoint);
    expect_same(read_checkpoint(folder / "c"), checkpoint);
  });
}

// The format is on disk: what was written once is read by every later version, and written so.
TEST(Checkpoint, IsTheGoldenFile) {
  const std::string golden = test::golden_path("checkpoint_1.bin");
  if (std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr)
    write_checkpoint(golden, small_checkpoint());
  expect_same(read_checkpoint(golden), small_checkpoint());
  EXPECT_TRUE(small_bytes() == bytes_of_file(golden));
}

TEST(Checkpoint, ReplacesTheOldOneAndFollowsALink) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", test::large_checkpoint(1, 1000));
  std::filesystem::create_symlink("c", folder / "link");
  write_checkpoint(folder / "link", test::large_checkpoint(2, 10));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_checkpoint(folder / "c").iteration, 2);
}

TEST(Checkpoint, FindsItsArrays) {
  const Checkpoint checkpoint = small_checkpoint();
  EXPECT_EQ(checkpoint.array("statistics.0", 2)[1], 1);
  EXPECT_THAT(error_of([&] { return checkpoint.array("statistics.1", 2); }),
              HasSubstr("the checkpoint has no array 'statistics.1'"));
  EXPECT_THAT(error_of([&] { return checkpoint.array("weights", 6); }),
              HasSubstr("array 'weights' of the checkpoint has 5 elements, and 6 are needed"));
}

TEST(Checkpoint, ThatIsNoneIsRefused) {
  const TemporaryFolder folder;
  const auto error_at = [&](const std::string& name) {
    return error_of([&] { return read_checkpoint(folder / name); });
  };
  EXPECT_THAT(error_at("none"), HasSubstr("No such file"));
  EXPECT_THAT(error_at("."), HasSubstr("this is no file"));
  std::ofstream(folder / "empty");
  EXPECT_THAT(error_at("empty"), HasSubstr("this is no checkpoint"));
  std::ofstream(folder / "text") << "recipe: mine\nepochs: 3\nbatch_per_rank: 64\n";
  EXPECT_THAT(error_at("text"), HasSubstr("text: this is no checkpoint"));
  EXPECT_THAT(error_of([] { return read_checkpoint("/dev/zero"); }), HasSubstr("this is no file"));
}

TEST(Checkpoint, ThatIsCutShortIsRefusedAtEveryByte) {
  const Bytes bytes = small_bytes();
  ASSERT_EQ(error_in(bytes), "no error");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = error_in({bytes.begin(), bytes.begin() + static_cast<long>(size)});
    const std::string expected =
        size == 0 ? "c: this is no checkpoint"
                  : "c: the checkpoint is cut short at byte " + std::to_string(size) + ":";
    EXPECT_THAT(error, StartsWith(expected));
  }
  Bytes longer = bytes;
  longer.push_back({});
  EXPECT_THAT(error_in(longer), HasSubstr("1 bytes follow the last array"));
}

TEST(Checkpoint, WithAnyBitFlippedIsRefused) {
  Bytes bytes = small_bytes();
  const std::size_t arrays = bytes.size() - 7 * sizeof(float);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte(1 << bit);
      const std::string error = error_in(bytes);
      const char* expected = i < 8                ? "this is no checkpoint"
                             : i < 12             ? "this checkpoint is of version"
                             : i < 16             ? "header"
                             : i < arrays         ? "the header is damaged: its checksum differs"
                             : i < arrays + 5 * 4 ? "array 'weights' is damaged"
                                                  : "array 'statistics.0' is damaged";
      EXPECT_THAT(error, HasSubstr(expected)) << "byte " << i << ", bit " << bit;
      EXPECT_EQ(error.find('\n'), std::string::npos);
      bytes[i] ^= std::byte(1 << bit);
    }
  }
}

TEST(Checkpoint, OfAWrongHeaderIsRefusedBeforeMemoryIsReserved) {
  const Bytes bytes = small_bytes();
  const std::string good(reinterpret_cast<const char*>(bytes.data()) + 32, bytes.size() - 32 - 28);
  EXPECT_EQ(error_in(sealed(good, 28)).find("the header"), std::string::npos);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string header = good;
    const std::size_t at = header.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_in(sealed(header.replace(at, from.size(), to), 28));
  };
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":4611686018427387905"),
              HasSubstr("cut short"));
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":18446744073709551615"),
              HasSubstr("no count"));
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":4000000000"), HasSubstr("cut short"));
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":-5"), HasSubstr("'elements' is no count"));
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":5.0"),
              HasSubstr("'elements' is no count"));
  EXPECT_THAT(error_with("\"elements\":5", "\"elements\":4"), HasSubstr("4 bytes follow"));
  EXPECT_THAT(error_with("momentum", "weights"), HasSubstr("two arrays of one name"));
  EXPECT_THAT(error_with("fp32", "fp64"), HasSubstr("not of FP32"));
  EXPECT_THAT(error_with("checkpoint/1", "checkpoint/2"), HasSubstr("the schema is not"));
  EXPECT_THAT(error_with("65536.0", "1e999"), HasSubstr("the header is no JSON"));
  EXPECT_THAT(error_with("65536.0", "0"), HasSubstr("no positive number"));
  EXPECT_THAT(error_with("65536.0", "null"), HasSubstr("no positive number"));
  EXPECT_THAT(error_with("\"fixed\":false", "\"fixed\":0"), HasSubstr("no truth value"));
  EXPECT_THAT(error_with("\"epoch\"", "\"epok\""), HasSubstr("no 'epoch'"));
  EXPECT_THAT(error_in(sealed("[]")), HasSubstr("no 'schema'"));
  EXPECT_THAT(error_in(sealed("{")), HasSubstr("the header is no JSON"));
  EXPECT_THAT(error_in(sealed(std::string(1 << 20, '['))), HasSubstr("the header is no JSON"));
  EXPECT_THAT(error_in(sealed("")), HasSubstr("the header is no JSON"));
}

TEST(Checksum, IsXxh3) {
  Checksummer summer;
  EXPECT_EQ(to_hex(summer.sum()), "99aa06d3014798d86001c324468d497f");  // of nothing, by xxh128sum
  summer.add(std::as_bytes(std::span("paceline", 4)));
  summer.add(std::as_bytes(std::span("line", 4)));
  Checksummer whole;
  whole.add(std::as_bytes(std::span("paceline", 8)));
  EXPECT_EQ(to_hex(summer.sum()), to_hex(whole.sum()));
}

}  // namespace
}  // namespace paceline::runtime
