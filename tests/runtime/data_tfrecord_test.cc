// TFRecord files, written by an independent writer, and files that are wrong by accident or on
// purpose.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "runtime/training/data/example.h"
#include "runtime/training/data/loader.h"
#include "runtime/training/data/tfrecord.h"
#include "tests/support/error_of.h"
#include "tests/support/jpeg_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tfrecord_files.h"

namespace paceline::runtime {
namespace {

using models::Shape;
using test::bytes_feature;
using test::bytes_of;
using test::example_of;
using test::imagenet_example;
using test::int_feature;
using test::record_of;
using Bytes = test::Bytes;

RecordFile in_memory(const Bytes& bytes) {
  return {.name = "f",
          .size = bytes.size(),
          .read = [&bytes](std::uint64_t offset, std::span<std::uint8_t> out) {
            ASSERT_LE(offset + out.size(), bytes.size()) << "reads beyond the end";
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                        out.begin());
          }};
}

// The data of every record.
std::vector<Bytes> records(const Bytes& bytes) {
  const RecordFile file = in_memory(bytes);
  std::vector<Bytes> result;
  Bytes scratch;
  for (const RecordPlace& place : record_places(file)) {
    const auto data = read_record(file, place, scratch);
    result.emplace_back(data.begin(), data.end());
  }
  return result;
}
std::string error(const Bytes& bytes) {
  return test::error_of([&] { return records(bytes); });
}

// RFC 3720, B.4, and the check value of the catalogue of CRCs.
TEST(Crc32c, HasTheKnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(Bytes(32, 0)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(masked(crc32c(Bytes(8, 0))), masked(test::slow_crc32c(Bytes(8, 0))));
}

TEST(Crc32c, IsThatOfTheDefinition) {
  std::mt19937 random(1);
  Bytes bytes;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(crc32c(bytes), test::slow_crc32c(bytes)) << i;
    bytes.push_back(static_cast<std::uint8_t>(random()));
  }
}

TEST(Tfrecord, ReadsWhatWasWritten) {
  EXPECT_EQ(records({}), std::vector<Bytes>{});
  std::vector<Bytes> written;
  Bytes file;
  for (std::size_t size : {0, 1, 7, 100, 5000, 0, 3}) {
    written.emplace_back(size, static_cast<std::uint8_t>(size));
    test::append(file, record_of(written.back()));
  }
  EXPECT_EQ(records(file), written);
}

TEST(Tfrecord, SaysWhereWhatIsWrong) {
  Bytes file = record_of(bytes_of("first"));
  const std::size_t second = file.size();
  test::append(file, record_of(bytes_of("second")));
  ASSERT_EQ(second, 21U);
  Bytes wrong = file;
  wrong[second + 2] ^= 1;
  EXPECT_EQ(error(wrong),
            "f, record at byte 21: its length fails its checksum; fetch the file again, and unpack "
            "it if it is compressed");
  wrong = file;
  wrong[second + 13] ^= 1;
  EXPECT_EQ(error(wrong),
            "f, record at byte 21: its data fails its checksum; fetch the file again");
  wrong = file;
  wrong.pop_back();
  EXPECT_EQ(error(wrong),
            "f, record at byte 21: the file ends after 21 of its 22 bytes; fetch the file again");
  wrong.resize(second + 15);
  EXPECT_EQ(error(wrong),
            "f, record at byte 21: the file ends after 15 bytes of it; fetch the file again");
  wrong = test::little_endian(std::uint64_t{1} << 62, 8);
  test::append(wrong, test::masked_crc(wrong));
  test::append(wrong, Bytes(100));
  EXPECT_EQ(error(wrong),
            "f, record at byte 0: its length is 4611686018427387904 bytes; a record has at most 1 "
            "GiB");
}

TEST(Tfrecord, EveryTruncationBetweenRecordsIsAnError) {
  Bytes file = record_of(bytes_of("first"));
  test::append(file, record_of(bytes_of("second")));
  for (std::size_t size = 1; size < file.size(); ++size)
    if (size != 21)
      EXPECT_NE(error({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}), "no error")
          << size;
}

TEST(Tfrecord, EveryFlippedBitIsAnError) {
  Bytes file = record_of(bytes_of("first"));
  test::append(file, record_of(bytes_of("second")));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes wrong = file;
    wrong[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_NE(error(wrong), "no error") << bit;
  }
}

LabelledJpeg parsed(const Bytes& record, int classes = 10) {
  ExampleReader reader;
  return {{}, reader.parse(record, classes, "f").label};
}
std::string example_error(const Bytes& record, int classes = 10) {
  return test::error_of([&] { return parsed(record, classes); });
}
const Bytes photograph_bytes = test::jpeg_of(test::smooth_pixels(40, 30), 40, 30);
const Bytes encoded = bytes_feature("image/encoded", photograph_bytes);

TEST(Example, CountsLabelsAsItsKeysSay) {
  EXPECT_EQ(parsed(imagenet_example(photograph_bytes, 1)).label, 0);
  EXPECT_EQ(parsed(imagenet_example(photograph_bytes, 10)).label, 9);
  const Bytes text = bytes_feature("image/class/text", bytes_of("tench"));
  EXPECT_EQ(parsed(example_of({encoded, int_feature("image/class/label", 3), text})).label, 2);
  EXPECT_EQ(parsed(example_of({encoded, int_feature("image/class/label", 3)})).label, 3);
  EXPECT_EQ(parsed(example_of({encoded, int_feature("image/class/label", 0)})).label, 0);
}

TEST(Example, HoldsTheImage) {
  ExampleReader reader;
  const Bytes record = imagenet_example(photograph_bytes, 4);
  for (int i = 0; i < 2; ++i) {
    const LabelledJpeg sample = reader.parse(record, 10, "f");
    EXPECT_EQ(Bytes(sample.jpeg.begin(), sample.jpeg.end()), photograph_bytes);
  }
}

TEST(Example, SaysWhatIsWrong) {
  EXPECT_EQ(example_error(bytes_of("no protocol buffer")),
            "f: is no tf.Example; write images with image/encoded and image/class/label");
  EXPECT_EQ(example_error({}), "f: has no image/encoded; it must be the bytes of one JPEG file");
  EXPECT_EQ(example_error(example_of({int_feature("image/encoded", 1)})),
            "f: has no image/encoded; it must be the bytes of one JPEG file");
  EXPECT_EQ(example_error(example_of({encoded})),
            "f: has no image/class/label; it must be one int64");
  EXPECT_EQ(example_error(example_of({encoded, int_feature("image/class/label", 10)})),
            "f: image/class/label is 10; the network tells 10 classes apart, 0 to 9");
  EXPECT_EQ(example_error(example_of({encoded, int_feature("image/class/label", -1)})),
            "f: image/class/label is -1; the network tells 10 classes apart, 0 to 9");
  EXPECT_EQ(example_error(imagenet_example(photograph_bytes, 0)),
            "f: image/class/label is 0; the network tells 10 classes apart, 1 to 10 as "
            "image/class/text or synset is there, too");
  EXPECT_EQ(example_error(example_of({encoded, bytes_feature("image/format", bytes_of("PNG")),
                                      int_feature("image/class/label", 1)})),
            "f: image/format is 'PNG'; images must be JPEG");
}

TEST(Example, DamageIsAnErrorOrAnotherExample) {
  std::mt19937 random(1);
  const Bytes whole = imagenet_example(Bytes(40, 7), 4);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(example_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
              "no error");
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = whole;
    for (std::size_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
    try {
      const std::int32_t label = parsed(bytes).label;
      EXPECT_TRUE(label >= 0 && label < 10);
    } catch (const InputError&) {
    }
  }
}

class TfrecordFolder : public testing::Test {
 protected:
  // Twelve records in two files and three in one, of 5 classes.
  void write_all() const {
    std::int64_t number = 0;
    for (const auto& [name, count] : {std::pair{"train-00000-of-00002", 7},
                                      {"train-00001-of-00002", 5},
                                      {"validation-00000-of-00001", 3}}) {
      Bytes file;
      for (int i = 0; i < count; ++i, ++number)
        test::append(file, record_of(imagenet_example(
                               test::jpeg_of(test::smooth_pixels(40, 30, double(number)), 40, 30),
                               1 + number % 5)));
      folder.write(name, file);
    }
    folder.write("labels.txt", {});
  }
  [[nodiscard]] std::unique_ptr<Dataset> opened(int classes = 5) const {
    return open_dataset(
        {.source = folder.path(), .sample = Shape::image(3, 16, 16), .classes = classes});
  }
  [[nodiscard]] std::string open_error(int classes = 5) const {
    return test::error_of([&] { return opened(classes); });
  }

  test::TemporaryFolder folder;
};

TEST_F(TfrecordFolder, HasTheRecordsInTheOrderOfTheFiles) {
  write_all();
  const auto dataset = opened();
  EXPECT_EQ(dataset->size(Part::training), 12);
  EXPECT_EQ(dataset->size(Part::test), 3);
  EXPECT_EQ(dataset->classes(), 5);
  std::vector<float> image(3 * 16 * 16);
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(dataset->read(Part::training, i, {}, 0, image), i % 5);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(dataset->read(Part::test, i, {}, 0, image), (12 + i) % 5);
}

TEST_F(TfrecordFolder, TakesItsFilesByName) {
  folder.write("validation-0", record_of(imagenet_example(photograph_bytes, 1)));
  for (const int number : {3, 0, 6, 2, 5, 1, 4})
    folder.write("train-" + std::to_string(number),
                 record_of(imagenet_example(photograph_bytes, 1 + number)));
  const auto dataset = opened(7);
  std::vector<float> image(3 * 16 * 16);
  for (std::int64_t i = 0; i < 7; ++i) EXPECT_EQ(dataset->read(Part::training, i, {}, 0, image), i);
}

TEST_F(TfrecordFolder, HasTheImagesOfAFolderOfFiles) {
  write_all();
  const test::TemporaryFolder files;
  for (int i = 0; i < 12; ++i)
    files.write("train/c/" + std::to_string(10 + i) + ".jpg",
                test::jpeg_of(test::smooth_pixels(40, 30, i), 40, 30));
  files.write("val/c/1.jpg", photograph_bytes);
  const auto records_dataset = opened();
  const auto files_dataset =
      open_dataset({.source = files.path(), .sample = Shape::image(3, 16, 16)});
  std::vector<float> a(3 * 16 * 16);
  std::vector<float> b(a.size());
  const Augmentation augmentation{.flip = true, .random_resized_crop = true};
  for (std::int64_t i = 0; i < 12; ++i) {
    records_dataset->read(Part::training, i, augmentation, 77, a);
    files_dataset->read(Part::training, i, augmentation, 77, b);
    EXPECT_EQ(a, b) << i;
  }
}

TEST_F(TfrecordFolder, IsReadByManyThreadsAsByOne) {
  write_all();
  const auto dataset = opened();
  const auto epoch = [&](int workers) {
    Loader loader(*dataset, Part::training, {.batch = 4, .workers = workers});
    std::vector<std::vector<float>> images;
    while (const Batch* batch = loader.next()) {
      const std::span<const float> numbers = host_floats(batch->images);
      images.emplace_back(numbers.begin(), numbers.end());
    }
    return images;
  };
  EXPECT_EQ(epoch(4), epoch(0));
}

TEST_F(TfrecordFolder, SaysWhatIsWrong) {
  const std::string train = folder.path() + "/train-00000";
  folder.write("train-00000", {});
  EXPECT_EQ(open_error(), folder.path() +
                              ": has no records in files train-*; TFRecord files are named train-* "
                              "and validation-*");
  folder.write("train-00000", bytes_of("\x1f\x8b\x08 gzip, not records"));
  EXPECT_EQ(open_error(), train +
                              ", record at byte 0: its length fails its checksum; fetch the file "
                              "again, and unpack it if it is compressed");
  folder.write("train-00000", record_of(imagenet_example(photograph_bytes, 6)));
  EXPECT_EQ(open_error(), train +
                              ", record at byte 0: image/class/label is 6; the network tells 5 "
                              "classes apart, 1 to 5 as image/class/text or synset is there, too");
  EXPECT_EQ(open_error(6), folder.path() +
                               ": has no records in files validation-*; TFRecord files are named "
                               "train-* and validation-*");
}

TEST_F(TfrecordFolder, NamesTheRecordThatIsDamaged) {
  write_all();
  Bytes file = record_of(imagenet_example(photograph_bytes, 1));
  const std::string second = std::to_string(file.size());
  test::append(file, record_of(imagenet_example(Bytes(100, 3), 1)));
  const std::string path = folder.write("train-00000-of-00002", file);
  const auto dataset = opened();
  std::vector<float> image(3 * 16 * 16);
  const auto read = [&] { return dataset->read(Part::training, 1, {}, 0, image); };
  EXPECT_EQ(test::error_of(read),
            path + ", record at byte " + second +
                ": no JPEG image (Not a JPEG file: starts with 0x03 0x03); fetch this image again, "
                "write it as JPEG, or remove it");
  folder.write("train-00000-of-00002", {file.begin(), file.end() - 8});
  EXPECT_EQ(test::error_of(read), path + ": ends at byte " + std::to_string(file.size() - 8) +
                                      ", and was longer before; leave the files alone while they "
                                      "are read");
}

}  // namespace
}  // namespace paceline::runtime
