// IDX files: the real Fashion-MNIST, and files that are wrong by accident or on purpose.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "runtime/training/data/idx.h"
#include "runtime/training/data/idx_dataset.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

const models::Shape small_image = models::Shape::image(1, 28, 28);

ByteVector idx(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions,
               const ByteVector& elements) {
  ByteVector bytes;
  const auto append = [&bytes](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::uint8_t>(number >> shift));
  };
  append(magic);
  for (const std::uint32_t dimension : dimensions) append(dimension);
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

ByteVector gzipped(const ByteVector& bytes) {
  z_stream stream{};
  constexpr int gzip_only = 16;
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + gzip_only, 8, Z_DEFAULT_STRATEGY);
  ByteVector result(deflateBound(&stream, bytes.size()) + 64);
  ByteVector source = bytes;
  stream.next_in = source.data();
  stream.avail_in = static_cast<uInt>(source.size());
  stream.next_out = result.data();
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// Two images of 2 x 3 with labels 1, 0.
const ByteVector pixels{0, 51, 102, 153, 204, 255, 10, 20, 30, 40, 50, 60};
const ByteVector image_file = idx(0x803, {2, 2, 3}, pixels);
const ByteVector label_file = idx(0x801, {2}, {1, 0});

std::string image_error(ByteVector bytes) {
  return test::error_of([&] { return parse_idx_images(std::move(bytes), "f"); });
}
std::string label_error(ByteVector bytes) {
  return test::error_of([&] { return parse_idx_labels(std::move(bytes), "f"); });
}
ByteVector cut(const ByteVector& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}
ByteVector joined(ByteVector a, const ByteVector& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void write_folder(const test::TemporaryFolder& folder, const ByteVector& images,
                  const ByteVector& labels) {
  for (const std::string part : {"train", "t10k"}) {
    folder.write(part + "-images-idx3-ubyte", images);
    folder.write(part + "-labels-idx1-ubyte", labels);
  }
}

class FashionMnist : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(fashion_mnist_folder))
      GTEST_SKIP() << "dataset-fashion-mnist is not installed";
    dataset = open_dataset({.source = "fashion-mnist", .sample = small_image});
  }
  std::unique_ptr<Dataset> dataset;
};

TEST_F(FashionMnist, HasTheSamplesOfThePaper) {
  EXPECT_EQ(dataset->name(), "fashion-mnist");
  EXPECT_EQ(dataset->sample(), small_image);
  EXPECT_EQ(dataset->classes(), 10);
  ASSERT_EQ(dataset->size(Part::training), 60'000);
  ASSERT_EQ(dataset->size(Part::test), 10'000);
  std::vector<float> image(784);
  std::vector<std::int32_t> first;
  for (const Part part : {Part::training, Part::test}) {
    std::map<std::int32_t, std::int64_t> counts;
    for (std::int64_t i = 0; i < dataset->size(part); ++i) {
      const std::int32_t label = dataset->read(part, i, {}, 0, image);
      ++counts[label];
      if (part == Part::training && i < 4) first.push_back(label);
    }
    for (std::int32_t label = 0; label < 10; ++label)
      EXPECT_EQ(counts[label], dataset->size(part) / 10) << label;
  }
  EXPECT_EQ(first, (std::vector<std::int32_t>{9, 0, 0, 3}));
}

TEST_F(FashionMnist, IsNormalised) {
  std::vector<float> image(784);
  double sum = 0;
  double squares = 0;
  float least = 0;
  for (std::int64_t i = 0; i < 60'000; ++i) {
    dataset->read(Part::training, i, {}, 0, image);
    for (const float value : image) {
      sum += value;
      squares += double{value} * value;
      least = std::min(least, value);
    }
  }
  constexpr double count = 60'000 * 784;
  EXPECT_NEAR(sum / count, 0, 1e-4);
  EXPECT_NEAR(squares / count, 1, 1e-4);
  EXPECT_NEAR(least, -0.2860 / 0.3530, 1e-3) << "the mean and deviation that others state";
}

TEST_F(FashionMnist, IsAVectorForNetworksThatTakeOne) {
  const auto vectors =
      open_dataset({.source = "fashion-mnist", .sample = models::Shape::vector(784)});
  EXPECT_EQ(vectors->sample(), models::Shape::vector(784));
  std::vector<float> a(784);
  std::vector<float> b(784);
  EXPECT_EQ(vectors->read(Part::test, 5, {}, 0, a), dataset->read(Part::test, 5, {}, 0, b));
  EXPECT_EQ(a, b);
}

TEST_F(FashionMnist, SaysWhatDoesNotFitTheNetwork) {
  const auto error = [](const models::Shape& shape, int classes) {
    return test::error_of([&] {
      return open_dataset({.source = "fashion-mnist", .sample = shape, .classes = classes});
    });
  };
  EXPECT_EQ(error(models::Shape::image(3, 224, 224), 10),
            "fashion-mnist: has images of 1x28x28, but the network takes 3x224x224; choose a "
            "network for these images, or images for the network");
  EXPECT_EQ(error(small_image, 9),
            std::string(fashion_mnist_folder) +
                "/t10k-labels-idx1-ubyte.gz: sample 0 has label 9; the network tells 9 classes "
                "apart, 0 to 8");
}

TEST(Idx, ReadsPlainAndGzip) {
  for (const ByteVector& bytes : {image_file, gzipped(image_file)}) {
    const IdxImages images = parse_idx_images(bytes, "f");
    EXPECT_EQ(images.count, 2);
    EXPECT_EQ(images.height, 2);
    EXPECT_EQ(images.width, 3);
    EXPECT_TRUE(std::equal(images.pixels().begin(), images.pixels().end(), pixels.begin()));
    EXPECT_EQ(images.image(1)[0], 10);
  }
  EXPECT_EQ(parse_idx_labels(label_file, "f"), (ByteVector{1, 0}));
  EXPECT_EQ(parse_idx_labels(gzipped(label_file), "f"), (ByteVector{1, 0}));
  const ByteVector members = joined(gzipped(cut(label_file, 3)), gzipped({0x01, 0, 0, 0, 2, 1, 0}));
  EXPECT_EQ(parse_idx_labels(members, "f"), (ByteVector{1, 0})) << "gzip files may be joined";
}

TEST(Idx, SaysWhatIsWrong) {
  EXPECT_EQ(image_error({}),
            "f: ends after 0 bytes; an IDX file of images has a header of 16 bytes");
  EXPECT_EQ(image_error(label_file),
            "f: ends after 10 bytes; an IDX file of images has a header of 16 bytes");
  EXPECT_EQ(label_error(image_file),
            "f: starts with 0x00000803; an IDX file of labels starts with 0x00000801");
  EXPECT_EQ(image_error(cut(image_file, 27)),
            "f: holds 11 bytes of images; its header says 2 x 2 x 3 = 12");
  EXPECT_EQ(image_error(joined(image_file, {0})),
            "f: holds 13 bytes of images; its header says 2 x 2 x 3 = 12");
  EXPECT_EQ(image_error(idx(0x803, {0, 2, 3}, {})),
            "f: dimension 1 is 0; it must be 1 to 4294967295");
  EXPECT_EQ(image_error(idx(0x803, {1, 65537, 3}, {})),
            "f: dimension 2 is 65537; it must be 1 to 65536");
  EXPECT_EQ(image_error(idx(0x803, {0xffffffff, 65536, 65536}, {})),
            "f: holds 0 bytes of images; its header says 4294967295 x 65536 x 65536 = "
            "18446744069414584320");
}

TEST(Idx, SaysWhatIsWrongWithGzip) {
  const ByteVector packed = gzipped(image_file);
  ByteVector flipped = packed;
  flipped[flipped.size() - 6] ^= 1;  // of the CRC
  EXPECT_EQ(image_error(flipped), "f: the gzip stream is damaged near byte " +
                                      std::to_string(packed.size() - 4) +
                                      " (incorrect data check); fetch the file again");
  EXPECT_EQ(image_error(cut(packed, packed.size() - 1)), "f: the gzip stream ends early, at byte " +
                                                             std::to_string(packed.size() - 1) +
                                                             "; fetch the file again");
  EXPECT_EQ(image_error(joined(packed, {1, 2, 3})),
            "f: 3 bytes follow the end of the gzip stream, at byte " +
                std::to_string(packed.size()) + "; fetch the file again");
  const ByteVector zeros = gzipped(ByteVector(1 << 20));
  EXPECT_EQ(test::error_of([&] { return parse_idx_images(zeros, "f", 1 << 16); }),
            "f: inflates to more than 65536 bytes; give a file that holds less");
}

TEST(Idx, EveryTruncationIsAnError) {
  for (const ByteVector& whole : {image_file, gzipped(image_file)})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(image_error(cut(whole, size)), "no error") << size;
}

// A flipped bit of a plain file may be another image; of gzip it is an error or has no effect.
TEST(Idx, DamageIsAnErrorOrHasNoEffect) {
  std::mt19937 random(1);
  const ByteVector packed = gzipped(image_file);
  for (int i = 0; i < 20'000; ++i) {
    ByteVector bytes = packed;
    for (std::size_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
    try {
      const IdxImages images = parse_idx_images(bytes, "f", 1 << 20);
      EXPECT_EQ(images.bytes, image_file);
    } catch (const InputError&) {
    }
  }
}

TEST(IdxFolder, ReadsWhatTheFilesHold) {
  const test::TemporaryFolder folder;
  write_folder(folder, image_file, gzipped(label_file));
  const DatasetRequest request{.source = folder.path(), .sample = models::Shape::image(1, 2, 3)};
  const auto dataset = open_dataset(request);
  EXPECT_EQ(dataset->classes(), 2);
  std::vector<float> image(6);
  EXPECT_EQ(dataset->read(Part::test, 0, {}, 0, image), 1);
  double mean = 0;
  for (const std::uint8_t pixel : pixels) mean += pixel / 255.0 / 12;
  double variance = 0;
  for (const std::uint8_t pixel : pixels) variance += std::pow(pixel / 255.0 - mean, 2) / 12;
  for (std::size_t i = 0; i < image.size(); ++i)
    EXPECT_NEAR(image[i], (pixels[i] / 255.0 - mean) / std::sqrt(variance), 1e-5);
}

TEST(IdxFolder, ImagesOfOneColourAreZero) {
  const test::TemporaryFolder folder;
  write_folder(folder, idx(0x803, {2, 2, 3}, ByteVector(12, 77)), label_file);
  const auto dataset =
      open_dataset({.source = folder.path(), .sample = models::Shape::image(1, 2, 3)});
  std::vector<float> image(6);
  dataset->read(Part::training, 0, {}, 0, image);
  for (const float value : image) EXPECT_NEAR(value, 0, 1e-6);
}

TEST(IdxFolder, SaysWhichFileIsMissingOrDoesNotFit) {
  const test::TemporaryFolder folder;
  const auto error = [&folder] {
    return test::error_of([&] {
      return open_dataset({.source = folder.path(), .sample = models::Shape::image(1, 2, 3)});
    });
  };
  folder.write("train-images-idx3-ubyte", image_file);
  folder.write("t10k-images-idx3-ubyte", image_file);
  EXPECT_EQ(error(), folder.path() +
                         ": has no t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz; "
                         "Fashion-MNIST is {train,t10k}-{images-idx3,labels-idx1}-ubyte");
  write_folder(folder, image_file, idx(0x801, {3}, {0, 1, 0}));
  EXPECT_EQ(error(), folder.path() +
                         "/t10k-labels-idx1-ubyte: has 3 labels for 2 images; take both files of "
                         "one dataset");
  write_folder(folder, image_file, label_file);
  folder.write("train-images-idx3-ubyte", idx(0x803, {2, 3, 2}, pixels));
  EXPECT_EQ(error(), folder.path() +
                         ": its training images are 3x2, its test images 2x3; take all files of "
                         "one dataset");
}

TEST(OpenDataset, SaysWhatItKnows) {
  const auto error = [](const std::string& source) {
    return test::error_of([&] { return open_dataset({.source = source, .sample = small_image}); });
  };
  EXPECT_EQ(error("fashion-mnits"),
            "'fashion-mnits' is neither a known dataset nor a folder; did you mean "
            "'fashion-mnist'?");
  EXPECT_EQ(error("/no/such/folder"),
            "'/no/such/folder' is neither a known dataset nor a folder; give 'fashion-mnist', "
            "'synthetic', a folder of images, or 'text:FILE'");
  const test::TemporaryFolder empty;
  EXPECT_EQ(error(empty.path()),
            empty.path() +
                ": holds no dataset; a folder holds train/CLASS/*.jpg and val/CLASS/*.jpg, or "
                "TFRecord files train-* and validation-*, or the IDX files of Fashion-MNIST");
}

}  // namespace
}  // namespace paceline::runtime
