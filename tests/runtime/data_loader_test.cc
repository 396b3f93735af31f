// The order of samples over ranks, batches and epochs, and the threads that decode them.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "models/base/error.h"
#include "runtime/training/data/batch_memory.h"
#include "runtime/training/data/loader.h"
#include "runtime/training/data/order.h"
#include "tests/support/error_of.h"

namespace paceline::runtime {
namespace {

// Samples of two floats: their index and the seed of their augmentation (24 bits). Label: index.
class NumberedDataset : public Dataset {
 public:
  explicit NumberedDataset(std::int64_t samples) : samples_(samples) {}

  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] models::Shape sample() const override { return models::Shape::vector(2); }
  [[nodiscard]] int classes() const override { return static_cast<int>(samples_); }
  [[nodiscard]] std::int64_t size(Part) const override { return samples_; }
  void read(Part, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
            std::span<float> image, std::span<std::int32_t> labels) const override {
    ++reads;
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (index == broken) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (index == broken || index == broken + 1)
      throw InputError("sample " + std::to_string(index) + " is damaged", "");
    image[0] = static_cast<float>(index);
    image[1] = augmentation.flip ? static_cast<float>(seed >> 40) : -1.0F;
    labels[0] = static_cast<std::int32_t>(index);
  }

  std::int64_t broken = -2;  // this one, late, and the next, at once
  std::chrono::microseconds delay{0};
  mutable std::atomic<std::int64_t> reads = 0;

 private:
  std::int64_t samples_;
};

using Labels = std::vector<std::vector<std::int32_t>>;

struct Contents {
  Labels labels;
  std::vector<std::vector<float>> images;
  bool operator==(const Contents&) const = default;
};

Contents contents(const Dataset& dataset, Part part, const LoaderOptions& options,
                  std::int64_t epoch = 0, std::int64_t first = 0) {
  Loader loader(dataset, part, options, epoch, first);
  Contents result;
  while (const Batch* batch = loader.next()) {
    const std::span<const float> images = host_floats(batch->images);
    EXPECT_EQ(images.size(), 2 * batch->labels.size());
    result.labels.emplace_back(batch->labels.begin(), batch->labels.end());
    result.images.emplace_back(images.begin(), images.end());
  }
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(static_cast<std::int64_t>(result.labels.size()), loader.batches() - first);
  return result;
}

RC_GTEST_PROP(Order, IsAPermutation, ()) {
  const std::int64_t samples = *rc::gen::inRange(1, 2000);
  std::vector<std::uint32_t> order =
      shuffled_order(samples, *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(0, 100));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < samples; ++i) RC_ASSERT(order[static_cast<std::size_t>(i)] == i);
}

TEST(Order, DiffersBetweenEpochsAndSeeds) {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::int64_t epoch = 0; epoch < 20; ++epoch)
      orders.insert(shuffled_order(50, seed, epoch));
  EXPECT_EQ(orders.size(), 400U);
  EXPECT_EQ(shuffled_order(50, 3, 4), shuffled_order(50, 3, 4));
}

// Each sample is in each place as often as in any other.
TEST(Order, IsUniform) {
  constexpr int samples = 6;
  constexpr int draws = 12'000;
  int counts[samples][samples] = {};
  for (int epoch = 0; epoch < draws; ++epoch) {
    const auto order = shuffled_order(samples, 1, epoch);
    for (int place = 0; place < samples; ++place)
      ++counts[place][order[static_cast<std::size_t>(place)]];
  }
  for (const auto& place : counts)
    for (const int count : place) EXPECT_NEAR(count, draws / samples, 200);  // deviation 41
}

RC_GTEST_PROP(Positions, OfRanksAreDisjointAndCoverTheGlobalBatch, ()) {
  Sharing sharing{.samples = *rc::gen::inRange(1, 500),
                  .ranks = *rc::gen::inRange(1, 9),
                  .batch = *rc::gen::inRange(1, 12)};
  std::int64_t next = 0;
  for (std::int64_t number = 0; number < batches_of_all(sharing); ++number) {
    for (sharing.rank = 0; sharing.rank < sharing.ranks; ++sharing.rank) {
      const Positions positions = positions_of(sharing, number);
      RC_ASSERT(positions.begin == next);
      RC_ASSERT(positions.count() >= 0 && positions.count() <= sharing.batch);
      const bool whole = number < batches_per_epoch(sharing.samples, sharing.ranks, sharing.batch);
      RC_ASSERT(!whole || positions.count() == sharing.batch);
      next = positions.end;
    }
  }
  RC_ASSERT(next == sharing.samples);
}

RC_GTEST_PROP(Loader, RanksShareAnEpochWithoutOverlap, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  const int batch = *rc::gen::inRange(1, 8);
  const NumberedDataset dataset(*rc::gen::inRange(ranks * batch, 200));
  const std::int64_t samples = dataset.size(Part::training);
  std::set<std::int32_t> training;
  std::set<std::int32_t> test;
  for (int rank = 0; rank < ranks; ++rank) {
    const LoaderOptions options{.rank = rank, .ranks = ranks, .batch = batch};
    const Contents trained = contents(dataset, Part::training, options);
    RC_ASSERT(static_cast<std::int64_t>(trained.labels.size()) ==
              batches_per_epoch(samples, ranks, batch));
    for (const auto& labels : trained.labels) {
      RC_ASSERT(labels.size() == static_cast<std::size_t>(batch));
      for (const std::int32_t label : labels) RC_ASSERT(training.insert(label).second);
    }
    const Contents tested = contents(dataset, Part::test, options);
    RC_ASSERT(static_cast<std::int64_t>(tested.labels.size()) ==
              (samples + ranks * batch - 1) / (ranks * batch));
    for (const auto& labels : tested.labels) {
      RC_ASSERT(std::is_sorted(labels.begin(), labels.end()));
      for (const std::int32_t label : labels) RC_ASSERT(test.insert(label).second);
    }
  }
  RC_ASSERT(static_cast<std::int64_t>(training.size()) == samples - samples % (ranks * batch));
  RC_ASSERT(static_cast<std::int64_t>(test.size()) == samples);
}

// The rule in the header, word by word.
TEST(Loader, FollowsTheOrderOfTheHeader) {
  const NumberedDataset dataset(50);
  LoaderOptions options{.ranks = 3, .batch = 4, .seed = 9};
  std::vector<std::int32_t> together;
  std::vector<Labels> of_ranks;
  for (options.rank = 0; options.rank < 3; ++options.rank)
    of_ranks.push_back(contents(dataset, Part::training, options, 2).labels);
  for (std::size_t i = 0; i < 4; ++i)
    for (const Labels& labels : of_ranks)
      together.insert(together.end(), labels[i].begin(), labels[i].end());
  const std::vector<std::int32_t> alone = [&] {
    std::vector<std::int32_t> result;
    for (const auto& labels : contents(dataset, Part::training, {.batch = 12, .seed = 9}, 2).labels)
      result.insert(result.end(), labels.begin(), labels.end());
    return result;
  }();
  EXPECT_EQ(together, alone) << "ranks change who reads a sample, not when";
}

RC_GTEST_PROP(Loader, ResumesAtAnyBatch, ()) {
  const NumberedDataset dataset(100);
  const LoaderOptions options{.rank = *rc::gen::inRange(0, 2),
                              .ranks = 2,
                              .batch = *rc::gen::inRange(1, 20),
                              .workers = *rc::gen::inRange(0, 4),
                              .seed = 5,
                              .augmentation = {.flip = true}};
  for (const Part part : {Part::training, Part::test}) {
    const Contents whole = contents(dataset, part, options, 3);
    const int first = *rc::gen::inRange(0, static_cast<int>(whole.labels.size()) + 1);
    const Contents rest = contents(dataset, part, options, 3, first);
    RC_ASSERT(std::equal(rest.labels.begin(), rest.labels.end(), whole.labels.begin() + first,
                         whole.labels.end()));
    RC_ASSERT(std::equal(rest.images.begin(), rest.images.end(), whole.images.begin() + first,
                         whole.images.end()));
  }
}

TEST(Loader, AnyNumberOfWorkersGivesTheSameBatches) {
  const NumberedDataset dataset(203);
  for (const Part part : {Part::training, Part::test}) {
    LoaderOptions options{
        .rank = 1, .ranks = 2, .batch = 7, .workers = 0, .augmentation = {.flip = true}};
    const Contents expected = contents(dataset, part, options, 1);
    for (options.workers = 1; options.workers <= 9; ++options.workers)
      for (options.prefetch = 1; options.prefetch <= 4; ++options.prefetch)
        EXPECT_EQ(contents(dataset, part, options, 1), expected)
            << options.workers << " workers, " << options.prefetch << " ahead";
  }
}

TEST(Loader, AugmentsTrainingOnlyAndAnewInEachEpoch) {
  const NumberedDataset dataset(64);
  const LoaderOptions options{.batch = 64, .augmentation = {.flip = true}};
  const auto seeds = [&](Part part, std::int64_t epoch) {
    std::set<float> result;
    const Contents read = contents(dataset, part, options, epoch);
    for (std::size_t i = 1; i < read.images[0].size(); i += 2) result.insert(read.images[0][i]);
    return result;
  };
  EXPECT_EQ(seeds(Part::test, 0), std::set<float>{-1.0F});
  EXPECT_EQ(seeds(Part::training, 0).size(), 64U);
  EXPECT_NE(seeds(Part::training, 0), seeds(Part::training, 1));
}

TEST(Loader, TheLastTestBatchesMayBeShortOrEmpty) {
  const NumberedDataset dataset(9);
  LoaderOptions options{.ranks = 4, .batch = 2};
  const auto last = [&](int rank) {
    options.rank = rank;
    return contents(dataset, Part::test, options).labels.back();
  };
  EXPECT_EQ(last(0), (std::vector<std::int32_t>{8}));
  EXPECT_EQ(last(1), (std::vector<std::int32_t>{}));
  EXPECT_EQ(last(3), (std::vector<std::int32_t>{}));
}

TEST(Loader, ReusesItsBuffers) {
  const NumberedDataset dataset(4000);
  Loader loader(dataset, Part::training, {.batch = 10, .workers = 2, .prefetch = 3});
  std::set<const std::byte*> buffers;
  while (const Batch* batch = loader.next()) buffers.insert(batch->images.data);
  EXPECT_EQ(buffers.size(), 4U) << "three ahead, and the one that is read";
}

TEST(Loader, ABatchStaysUntilTheNextCall) {
  const NumberedDataset dataset(400);
  Loader loader(dataset, Part::test, {.batch = 4, .workers = 3, .prefetch = 1});
  for (std::int32_t i = 0; const Batch* batch = loader.next(); i += 4) {
    if (i < 40) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THAT(batch->labels, testing::ElementsAre(i, i + 1, i + 2, i + 3));
  }
}

TEST(Loader, RethrowsWhenTheBatchIsDue) {
  NumberedDataset dataset(100);
  dataset.broken = 47;  // and 48, in the fifth batch of ten
  for (int workers = 0; workers <= 12; workers += 3) {
    Loader loader(dataset, Part::test, {.batch = 10, .workers = workers, .prefetch = 4});
    for (int i = 0; i < 4; ++i) ASSERT_NE(loader.next(), nullptr);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(test::error_of([&] { return loader.next(); }), "sample 47 is damaged") << workers;
  }
}

// Training takes a batch ahead where it is ready, and an error of the next batch must not end this one.
TEST(Loader, IsReadyWhereTheNextBatchIsDecodedAndSound) {
  NumberedDataset dataset(40);
  dataset.broken = 25;
  Loader loader(dataset, Part::test, {.batch = 10, .workers = 2, .prefetch = 4});
  const auto becomes_ready = [&] {
    for (int i = 0; i < 1000 && !loader.is_ready(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return loader.is_ready();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(becomes_ready());
    ASSERT_NE(loader.next(), nullptr);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(loader.is_ready());
  EXPECT_EQ(test::error_of([&] { return loader.next(); }), "sample 25 is damaged");
  Loader alone(dataset, Part::test, {.batch = 10, .workers = 0});
  EXPECT_FALSE(alone.is_ready());
}

TEST(BatchMemory, IsTakenAgainByTheNextLoader) {
  const NumberedDataset dataset(40);
  int allocated = 0;
  BatchMemory memory([&](std::size_t bytes) {
    ++allocated;
    return host_memory(bytes);
  });
  const auto read = [&](int batch) {
    Loader loader(dataset, Part::test,
                  {.batch = batch, .workers = 1, .prefetch = 2, .allocate = [&](std::size_t bytes) {
                     return memory.take(bytes);
                   }});
    while (loader.next() != nullptr) {
    }
  };
  read(10);
  EXPECT_EQ(allocated, 3);
  read(10);
  EXPECT_EQ(allocated, 3);
  read(20);
  EXPECT_EQ(allocated, 6);
}

TEST(Loader, ReadsNoFurtherAheadThanAsked) {
  NumberedDataset dataset(1000);
  Loader loader(dataset, Part::test, {.batch = 10, .workers = 3, .prefetch = 2});
  ASSERT_NE(loader.next(), nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(dataset.reads, 30);
}

// Some 10 s of decoding are ahead; the destructor waits for one sample of each worker.
TEST(Loader, EndsWithoutDecodingWhatIsAhead) {
  NumberedDataset dataset(100'000);
  dataset.delay = std::chrono::milliseconds(1);
  { const Loader loader(dataset, Part::training, {.batch = 10'000, .workers = 2, .prefetch = 2}); }
  EXPECT_LT(dataset.reads, 1000);
}

TEST(Loader, CountsItsWaits) {
  NumberedDataset dataset(20);
  dataset.delay = std::chrono::milliseconds(1);
  for (const int workers : {0, 1}) {
    const auto start = std::chrono::steady_clock::now();
    Loader loader(dataset, Part::test, {.batch = 10, .workers = workers});
    EXPECT_EQ(loader.waited(), Seconds{0});
    ASSERT_NE(loader.next(), nullptr);
    if (workers == 0) EXPECT_GE(loader.waited(), Seconds{10e-3}) << "ten samples of 1 ms";
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    EXPECT_LE(loader.waited(), Seconds{wall.count()});
  }
}

TEST(Loader, SaysWhichOptionIsWrong) {
  const NumberedDataset dataset(100);
  const auto error = [&](const LoaderOptions& options, std::int64_t epoch = 0,
                         std::int64_t first = 0) {
    return test::error_of([&] {
      const Loader loader(dataset, Part::training, options, epoch, first);
      return 0;
    });
  };
  EXPECT_EQ(error({.ranks = 0}), "the number of ranks is 0; give 1 or more");
  EXPECT_EQ(error({.rank = 2, .ranks = 2}), "the rank is 2; ranks are 0 to 1");
  EXPECT_EQ(error({.batch = 0}), "the batch of a rank is 0; give 1 or more samples");
  EXPECT_EQ(error({.workers = -1}), "the number of workers is -1; give 0 to 1024 threads");
  EXPECT_EQ(error({.prefetch = 0}), "the number of batches ahead is 0; give 1 to 1024");
  EXPECT_EQ(error({}, -1), "the epoch is -1; epochs count from 0");
  EXPECT_EQ(error({.batch = 10}, 0, 11),
            "an epoch of 'numbers' cannot start at batch 11; it has 10");
  EXPECT_EQ(error({.ranks = 4, .batch = 32}),
            "the training set of 'numbers' has 100 samples, fewer than 4 ranks take in one batch "
            "of 32; choose a smaller batch");
}

}  // namespace
}  // namespace paceline::runtime
