#include "runtime/training/data/tfrecord_dataset.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/data/example.h"
#include "runtime/training/data/photograph.h"
#include "runtime/training/data/pool.h"
#include "runtime/training/data/tfrecord.h"

namespace paceline::runtime {
namespace {

namespace fs = std::filesystem;

// A file that is open for reading.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path) {
    handle_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle_ < 0) throw unreadable(errno);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(handle_); }

  void read(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = pread(handle_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw unreadable(errno);
      if (count == 0)
        throw InputError(InputPlace{.file = path_},
                         "ends at byte " + std::to_string(offset) + ", and was longer before",
                         "leave the files alone while they are read");
      offset += static_cast<std::uint64_t>(count);
      bytes = bytes.subspan(to_size(count));
    }
  }

 private:
  [[nodiscard]] InputError unreadable(int error) const {
    return InputError(InputPlace{.file = path_}, std::string("cannot read: ") + strerror(error),
                      "");
  }
  std::string path_;
  int handle_ = -1;
};

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw InputError(InputPlace{.file = path}, "cannot read: " + error.message(), "");
  return size;
}

struct TfrecordPart {
  struct Record {
    std::uint32_t file = 0;
    RecordPlace place;
  };
  std::vector<std::string> files;
  std::vector<Record> records;
};

// The memory of one thread that reads.
struct Scratch {
  std::vector<std::uint8_t> bytes;
  ExampleReader example;
  PhotographReader photograph;
};

std::vector<std::string> files_of(const std::string& folder, std::string_view beginning) {
  std::vector<std::string> files;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().starts_with(beginning) && entry.is_regular_file())
        files.push_back(entry.path().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError(InputPlace{.file = folder},
                     "cannot list the folder: " + error.code().message(), "");
  }
  std::sort(files.begin(), files.end());
  return files;
}

TfrecordPart indexed(const std::string& folder, const std::string& beginning, int classes) {
  TfrecordPart part{.files = files_of(folder, beginning), .records = {}};
  Scratch scratch;
  for (std::size_t i = 0; i < part.files.size(); ++i) {
    const OpenFile open_file(part.files[i]);
    const RecordFile file{.name = part.files[i],
                          .size = size_of(part.files[i]),
                          .read = [&](std::uint64_t offset, std::span<std::uint8_t> bytes) {
                            open_file.read(offset, bytes);
                          }};
    const std::vector<RecordPlace> places = record_places(file);
    if (places.empty()) continue;
    static_cast<void>(scratch.example.parse(read_record(file, places[0], scratch.bytes), classes,
                                            name_of(file, places[0])));
    for (const RecordPlace& place : places)
      part.records.push_back({static_cast<std::uint32_t>(i), place});
  }
  if (part.records.empty())
    throw InputError(InputPlace{.file = folder}, "has no records in files " + beginning + "*",
                     "TFRecord files are named train-* and validation-*");
  return part;
}

class TfrecordFolder : public Dataset {
 public:
  explicit TfrecordFolder(const DatasetRequest& request)
      : name_(request.source),
        sample_(request.sample),
        classes_(request.classes),
        training_(indexed(request.source, "train-", request.classes)),
        test_(indexed(request.source, "validation-", request.classes)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] models::Shape sample() const override { return sample_; }
  [[nodiscard]] int classes() const override { return classes_; }
  [[nodiscard]] std::int64_t size(Part part) const override {
    return static_cast<std::int64_t>(of(part).records.size());
  }

  void read(Part part, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
            std::span<float> image, std::span<std::int32_t> labels) const override {
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    const TfrecordPart::Record& record = of(part).records[to_size(index)];
    const OpenFile open_file(of(part).files[record.file]);
    const RecordFile file{.name = of(part).files[record.file],
                          .size = 0,  // that of the index counts
                          .read = [&](std::uint64_t offset, std::span<std::uint8_t> bytes) {
                            open_file.read(offset, bytes);
                          }};
    const std::string name = name_of(file, record.place);
    Pool<Scratch>::Loan scratch(scratch_);
    const LabelledJpeg sample =
        scratch->example.parse(read_record(file, record.place, scratch->bytes), classes_, name);
    scratch->photograph.read(sample.jpeg, name, sample_, augmentation, seed, image);
    labels[0] = sample.label;
  }

 private:
  [[nodiscard]] const TfrecordPart& of(Part part) const {
    return part == Part::training ? training_ : test_;
  }

  std::string name_;
  models::Shape sample_;
  int classes_;
  TfrecordPart training_;
  TfrecordPart test_;
  mutable Pool<Scratch> scratch_;
};

}  // namespace

bool is_tfrecord_folder(const std::string& folder) {
  return !files_of(folder, "train-").empty();
}

std::unique_ptr<Dataset> open_tfrecord_folder(const DatasetRequest& request) {
  check_takes_photographs(request);
  return std::make_unique<TfrecordFolder>(request);
}

}  // namespace paceline::runtime
