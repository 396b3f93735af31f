// Images a second of each kind of dataset, on one core, and through the loader.
//
//   build/release/tests/benchmarks/data_benchmark
//
// Photographs are noise of 500 x 375 pixels at quality 93, about 110 kB, the mean of ImageNet; the
// network takes 3x224x224. The files are in the page cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>

#include "runtime/training/data/idx_dataset.h"
#include "runtime/training/data/loader.h"
#include "runtime/training/data/tfrecord.h"
#include "tests/support/jpeg_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tfrecord_files.h"

namespace {

using namespace paceline;
using models::Shape;
using runtime::Augmentation;
using runtime::Dataset;
using runtime::open_dataset;
using runtime::Part;

constexpr int photographs = 64;
const Augmentation for_small{.crop_padding = 2, .flip = true};
const Augmentation for_photographs{.flip = true, .random_resized_crop = true};

// Draws waves with noise. The noise and the quality are chosen so that a file has the size above.
std::vector<std::uint8_t> photograph(unsigned seed) {
  constexpr int height = 375;
  constexpr int width = 500;
  std::vector<std::uint8_t> pixels = test::smooth_pixels(height, width, seed);
  std::mt19937 random(seed);
  for (std::uint8_t& value : pixels)
    value =
        static_cast<std::uint8_t>(std::clamp(value + static_cast<int>(random() % 61) - 30, 0, 255));
  return test::jpeg_of(pixels, height, width, {.subsampling = TJSAMP_420, .quality = 93});
}

std::unique_ptr<Dataset> small(const std::string& source) {
  return open_dataset({.source = source, .sample = Shape::image(1, 28, 28)});
}
std::unique_ptr<Dataset> large(const std::string& source) {
  return open_dataset({.source = source, .sample = Shape::image(3, 224, 224), .classes = 1000});
}

struct Folders {
  Folders() {
    test::Bytes records;
    for (unsigned i = 0; i < photographs; ++i) {
      const std::vector<std::uint8_t> jpeg = photograph(i);
      bytes += static_cast<double>(jpeg.size()) / photographs;
      files.write("train/c/" + std::to_string(i) + ".jpg", jpeg);
      test::append(records, test::record_of(test::imagenet_example(jpeg, 1)));
    }
    files.write("val/c/0.jpg", photograph(0));
    tfrecord.write("train-0", records);
    tfrecord.write("validation-0", records);
  }
  test::TemporaryFolder files;
  test::TemporaryFolder tfrecord;
  double bytes = 0;  // of a photograph
};
const Folders& folders() {
  static const Folders made;
  return made;
}

void read(benchmark::State& state, const Dataset& dataset, const Augmentation& augmentation) {
  std::vector<float> image(static_cast<std::size_t>(dataset.sample().elements()));
  const std::int64_t samples = dataset.size(Part::training);
  std::int64_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(dataset.read(Part::training, i % samples, augmentation,
                                          static_cast<std::uint64_t>(i), image));
    ++i;
  }
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(i), benchmark::Counter::kIsRate);
}

// Reads one training epoch after the other, as the training loop does.
void load(benchmark::State& state, const Dataset& dataset, int batch,
          const Augmentation& augmentation) {
  const auto workers = static_cast<int>(state.range(0));
  std::int64_t images = 0;
  for ([[maybe_unused]] auto _ : state) {
    runtime::Loader loader(dataset, Part::training,
                           {.batch = batch, .workers = workers, .augmentation = augmentation});
    while (const runtime::Batch* next = loader.next()) {
      benchmark::DoNotOptimize(next->images.data);
      images += static_cast<std::int64_t>(next->labels.size());
    }
  }
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(images), benchmark::Counter::kIsRate);
}

void fashion_mnist(benchmark::State& state) {
  read(state, *small("fashion-mnist"), {});
}
void fashion_mnist_augmented(benchmark::State& state) {
  read(state, *small("fashion-mnist"), for_small);
}
void synthetic_small(benchmark::State& state) {
  read(state, *small("synthetic"), {});
}
void synthetic_imagenet(benchmark::State& state) {
  read(state, *large("synthetic"), {});
}
void image_folder(benchmark::State& state) {
  read(state, *large(folders().files.path()), {});
}
void image_folder_augmented(benchmark::State& state) {
  read(state, *large(folders().files.path()), for_photographs);
  state.counters["bytes"] = folders().bytes;
}
void tfrecord_augmented(benchmark::State& state) {
  read(state, *large(folders().tfrecord.path()), for_photographs);
}
void load_fashion_mnist(benchmark::State& state) {
  load(state, *small("fashion-mnist"), 64, for_small);
}
void load_image_folder(benchmark::State& state) {
  load(state, *large(folders().files.path()), 16, for_photographs);
}
void open_fashion_mnist(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(small("fashion-mnist"));
}
void crc32c(benchmark::State& state) {
  const std::vector<std::uint8_t> bytes(1 << 17, 1);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(runtime::crc32c(bytes));
  state.SetBytesProcessed(state.iterations() << 17);
}

}  // namespace

BENCHMARK(fashion_mnist);
BENCHMARK(fashion_mnist_augmented);
BENCHMARK(synthetic_small);
BENCHMARK(synthetic_imagenet)->Unit(benchmark::kMicrosecond);
BENCHMARK(image_folder)->Unit(benchmark::kMicrosecond);
BENCHMARK(image_folder_augmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(tfrecord_augmented)->Unit(benchmark::kMicrosecond);
BENCHMARK(load_fashion_mnist)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(load_image_folder)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(open_fashion_mnist)->Unit(benchmark::kMillisecond);
BENCHMARK(crc32c);
BENCHMARK_MAIN();
