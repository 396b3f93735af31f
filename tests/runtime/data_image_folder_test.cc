// Folders of photographs, through open_dataset as a user names them.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/training/data/loader.h"
#include "tests/support/error_of.h"
#include "tests/support/jpeg_files.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using models::Shape;

const std::vector<std::uint8_t>& photograph() {
  static const auto jpeg = test::jpeg_of(test::smooth_pixels(40, 30), 40, 30);
  return jpeg;
}

class ImageFolder : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Dataset> opened() const {
    return open_dataset({.source = folder.path(), .sample = Shape::image(3, 16, 16), .classes = 3});
  }
  [[nodiscard]] std::string error() const {
    return test::error_of([this] { return opened(); });
  }
  void write(const std::string& name) const { folder.write(name, photograph()); }

  // dog is 2, cat is 0, cow is 1.
  void write_all() const {
    for (const char* name :
         {"train/dog/b.jpg", "train/dog/a.JPEG", "train/cat/1.jpeg", "train/cow/x.JPG",
          "train/cow/notes.txt", "train/.hidden/y.jpg", "train/cow/.z.jpg", "train/list.txt",
          "val/dog/v.jpg", "val/cat/w.jpg"})
      write(name);
  }

  test::TemporaryFolder folder;
};

TEST_F(ImageFolder, HasClassesByName) {
  write_all();
  const auto dataset = opened();
  EXPECT_EQ(dataset->name(), folder.path());
  EXPECT_EQ(dataset->classes(), 3);
  EXPECT_EQ(dataset->sample(), Shape::image(3, 16, 16));
  EXPECT_EQ(dataset->size(Part::training), 4);
  EXPECT_EQ(dataset->size(Part::test), 2);
  std::vector<float> image(3 * 16 * 16);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < 4; ++i)
    labels.push_back(dataset->read(Part::training, i, {}, 0, image));
  EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 1, 2, 2}));
  EXPECT_EQ(dataset->read(Part::test, 0, {}, 0, image), 0);
  EXPECT_EQ(dataset->read(Part::test, 1, {}, 0, image), 2);
}

TEST_F(ImageFolder, IsReadByManyThreadsAsByOne) {
  for (int i = 0; i < 40; ++i)
    folder.write("train/c/" + std::to_string(i) + ".jpg",
                 test::jpeg_of(test::smooth_pixels(40 + i, 60 - i, i), 40 + i, 60 - i));
  write("val/c/1.jpg");
  const auto dataset = opened();
  const auto epoch = [&](int workers) {
    Loader loader(*dataset, Part::training,
                  {.batch = 8,
                   .workers = workers,
                   .augmentation = {.crop_padding = 1, .flip = true, .random_resized_crop = true}});
    std::vector<std::vector<float>> images;
    while (const Batch* batch = loader.next()) {
      const std::span<const float> numbers = host_floats(batch->images);
      images.emplace_back(numbers.begin(), numbers.end());
    }
    return images;
  };
  EXPECT_EQ(epoch(4), epoch(0));
}

TEST_F(ImageFolder, SaysWhatIsWrong) {
  folder.write("train/readme.txt", {});
  EXPECT_EQ(error(), folder.path() +
                         ": has a folder train, but no val; put the images to test with into "
                         "val/CLASS");
  write("val/v.jpg");
  EXPECT_EQ(error(), folder.path() +
                         "/train: holds no folders of classes; sort its images into one folder "
                         "for each class");
  folder.write("train/dog/a.png", {});
  EXPECT_EQ(error(), folder.path() +
                         "/train/dog: holds no JPEG files; put *.jpg, *.jpeg or *.JPEG there, or "
                         "remove the folder");
  write("train/dog/a.jpg");
  EXPECT_EQ(error(), folder.path() +
                         "/val: holds no folders of classes; sort its images into one folder for "
                         "each class");
  write("val/dgo/v.jpg");
  EXPECT_EQ(error(), folder.path() + "/val: unknown class 'dgo'; did you mean 'dog'?");
}

TEST_F(ImageFolder, SaysWhatDoesNotFitTheNetwork) {
  write_all();
  write("train/pig/1.jpg");
  EXPECT_EQ(error(), folder.path() +
                         ": has 4 classes, but the network tells only 3 apart; choose a network "
                         "with more outputs");
  EXPECT_EQ(test::error_of([this] {
              return open_dataset({.source = folder.path(), .sample = Shape::image(1, 28, 28)});
            }),
            folder.path() +
                ": has images of 3 channels, but the network takes 1x28x28; choose a network for "
                "these images, or images for the network");
}

TEST_F(ImageFolder, NamesTheFileThatIsDamaged) {
  write_all();
  folder.write("train/cow/x.JPG", {photograph().begin(), photograph().begin() + 400});
  const auto dataset = opened();
  std::vector<float> image(3 * 16 * 16);
  const auto read = [&] { return dataset->read(Part::training, 1, {}, 0, image); };
  EXPECT_EQ(test::error_of(read).rfind(folder.path() + "/train/cow/x.JPG: ", 0), 0U)
      << test::error_of(read);
  std::filesystem::remove(folder.path() + "/train/cow/x.JPG");
  EXPECT_EQ(test::error_of(read),
            folder.path() + "/train/cow/x.JPG: cannot read: No such file or directory");
  EXPECT_EQ(dataset->read(Part::training, 0, {}, 0, image), 0) << "the others are whole";
}

}  // namespace
}  // namespace paceline::runtime
