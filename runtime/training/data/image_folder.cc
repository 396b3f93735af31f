#include "runtime/training/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "runtime/training/data/fit.h"
#include "runtime/training/data/photograph.h"
#include "runtime/training/data/pool.h"

namespace paceline::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_file_bytes = std::size_t{1} << 30;

// Files of a part. A million names are kept in one piece of text.
class FileList {
 public:
  void add(std::string_view file, std::int32_t label) {
    files_.push_back({text_.size(), label});
    text_ += file;
    text_ += '\0';
  }
  [[nodiscard]] std::size_t size() const { return files_.size(); }
  [[nodiscard]] const char* name(std::size_t index) const {
    return text_.data() + files_[index].name;
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const { return files_[index].label; }

 private:
  struct File {
    std::size_t name = 0;  // where it begins in the text
    std::int32_t label = 0;
  };
  std::string text_;
  std::vector<File> files_;
};

bool is_jpeg_name(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpg" || extension == ".jpeg";
}

bool is_folder(const fs::directory_entry& entry) {
  return entry.is_directory();
}
bool is_jpeg_file(const fs::directory_entry& entry) {
  return is_jpeg_name(entry.path()) && entry.is_regular_file();
}

// The names in a folder that pass, except for those that begin with a dot, in order.
std::vector<std::string> names_in(const fs::path& folder,
                                  const std::function<bool(const fs::directory_entry&)>& passes) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (name[0] != '.' && passes(entry)) names.push_back(std::move(name));
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError(InputPlace{.file = folder.string()},
                     "cannot list the folder: " + error.code().message(), "");
  }
  std::sort(names.begin(), names.end());
  return names;
}

FileList files_of(const fs::path& folder, const std::vector<std::string>& classes,
                  const std::vector<std::string>& folders) {
  FileList files;
  for (const std::string& name : folders) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name)
      throw unknown_name("class", name, classes).at({.file = folder.string()});
    const std::vector<std::string> images = names_in(folder / name, is_jpeg_file);
    if (images.empty())
      throw InputError(InputPlace{.file = (folder / name).string()}, "holds no JPEG files",
                       "put *.jpg, *.jpeg or *.JPEG there, or remove the folder");
    for (const std::string& image : images)
      files.add(name + "/" + image, static_cast<std::int32_t>(found - classes.begin()));
  }
  return files;
}

std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> names = names_in(folder, is_folder);
  if (names.empty())
    throw InputError(InputPlace{.file = folder.string()}, "holds no folders of classes",
                     "sort its images into one folder for each class");
  return names;
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const DatasetRequest& request, int classes, FileList training, FileList test)
      : name_(request.source),
        sample_(request.sample),
        classes_(classes),
        training_(std::move(training)),
        test_(std::move(test)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] models::Shape sample() const override { return sample_; }
  [[nodiscard]] int classes() const override { return classes_; }
  [[nodiscard]] std::int64_t size(Part part) const override {
    return static_cast<std::int64_t>(of(part).size());
  }

  void read(Part part, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
            std::span<float> image, std::span<std::int32_t> labels) const override {
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    const auto place = to_size(index);
    const std::string path =
        name_ + (part == Part::training ? "/train/" : "/val/") + of(part).name(place);
    Pool<Scratch>::Loan scratch(scratch_);
    read_file(path, most_file_bytes, scratch->file);
    scratch->reader.read(scratch->file, path, sample_, augmentation, seed, image);
    labels[0] = of(part).label(place);
  }

 private:
  struct Scratch {
    ByteVector file;
    PhotographReader reader;
  };
  [[nodiscard]] const FileList& of(Part part) const {
    return part == Part::training ? training_ : test_;
  }

  std::string name_;
  models::Shape sample_;
  int classes_;
  FileList training_;
  FileList test_;
  mutable Pool<Scratch> scratch_;
};

}  // namespace

bool is_image_folder(const std::string& folder) {
  std::error_code error;
  return fs::is_directory(fs::path(folder) / "train", error);
}

std::unique_ptr<Dataset> open_image_folder(const DatasetRequest& request) {
  check_takes_photographs(request);
  const fs::path folder(request.source);
  std::error_code error;
  if (!fs::is_directory(folder / "val", error))
    throw InputError(InputPlace{.file = request.source}, "has a folder train, but no val",
                     "put the images to test with into val/CLASS");
  const std::vector<std::string> classes = class_folders(folder / "train");
  check_classes(request, static_cast<std::int64_t>(classes.size()));
  FileList training = files_of(folder / "train", classes, classes);
  FileList test = files_of(folder / "val", classes, class_folders(folder / "val"));
  return std::make_unique<ImageFolder>(request, static_cast<int>(classes.size()),
                                       std::move(training), std::move(test));
}

}  // namespace paceline::runtime
