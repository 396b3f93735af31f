// Synthetic images, and how images are placed: crops and flips.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "models/base/seeds.h"
#include "runtime/training/data/placement.h"
#include "tests/support/error_of.h"

namespace paceline::runtime {
namespace {

using models::Shape;

std::vector<float> image_of(const Dataset& dataset, Part part, std::int64_t index,
                            const Augmentation& augmentation = {}, std::uint64_t seed = 0) {
  std::vector<float> image(static_cast<std::size_t>(dataset.sample().elements()));
  dataset.read(part, index, augmentation, seed, image);
  return image;
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
}

TEST(Synthetic, HasMeanZeroAndVarianceOne) {
  const auto dataset =
      open_dataset({.source = "synthetic", .sample = Shape::image(3, 32, 32), .classes = 50});
  EXPECT_EQ(dataset->size(Part::training), 1024);
  EXPECT_EQ(dataset->classes(), 50);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 1000; ++i) {
    for (const float value : image_of(*dataset, Part::training, i)) {
      sum += value;
      squares += double{value} * value;
    }
  }
  constexpr double count = 1000.0 * 3 * 32 * 32;
  EXPECT_NEAR(sum / count, 0, 0.02);  // 50 x 147 patches of deviation 0.7: 0.008
  EXPECT_NEAR(squares / count, 1, 0.02);
}

// Two images have half of their variance in common if they are of one class, and nothing if not:
// the mean image of a class tells it from the others, in both parts.
TEST(Synthetic, TheLabelIsLearnable) {
  for (const Shape& shape :
       {Shape::image(1, 28, 28), Shape::image(3, 64, 48), Shape::vector(500)}) {
    const auto dataset =
        open_dataset({.source = "synthetic", .sample = shape, .classes = 10, .seed = 7});
    std::vector<std::vector<float>> means(10);
    for (int i = 0; i < 10; ++i)
      means[static_cast<std::size_t>(i)] = image_of(*dataset, Part::training, i);
    for (int i = 0; i < 200; ++i) {
      const std::vector<float> image = image_of(*dataset, Part::test, i);
      for (int label = 0; label < 10; ++label) {
        const double shared = correlation(means[static_cast<std::size_t>(label)], image);
        EXPECT_EQ(shared > 0.28, label == i % 10) << shared << ' ' << models::to_text(shape);
      }
    }
  }
}

TEST(Synthetic, IsAFunctionOfItsSeed) {
  const auto make = [](std::uint64_t seed) {
    return open_dataset(
        {.source = "synthetic", .sample = Shape::image(1, 8, 8), .classes = 3, .seed = seed});
  };
  const auto a = make(1);
  EXPECT_EQ(image_of(*a, Part::training, 5), image_of(*make(1), Part::training, 5));
  EXPECT_NE(image_of(*a, Part::training, 5), image_of(*make(2), Part::training, 5));
  EXPECT_NE(image_of(*a, Part::training, 5), image_of(*a, Part::test, 5));
  EXPECT_NE(image_of(*a, Part::training, 5), image_of(*a, Part::training, 8)) << "one class";
}

TEST(Synthetic, SaysWhatItCannotMake) {
  const auto error = [](const DatasetRequest& request) {
    return test::error_of([&] { return open_dataset(request); });
  };
  EXPECT_EQ(error({.source = "synthetic", .sample = Shape::vector(4), .synthetic_samples = 0}),
            "0 synthetic samples in each part; ask for 1 or more");
  EXPECT_EQ(error({.source = "synthetic", .sample = Shape::vector(4), .classes = 0}),
            "0 classes; a network tells 1 or more apart");
  EXPECT_EQ(error({.source = "synthetic", .sample = Shape::image(3, 0, 4)}),
            "a sample of shape 3x0x4; every dimension is 1 or more");
}

// Image i of 2 channels x 4 x 5 whose pixels are all different and none is zero.
std::vector<float> placed(const Placement& placement) {
  const Shape shape = Shape::image(2, 4, 5);
  std::vector<std::uint8_t> pixels(40);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  std::vector<float> image(40);
  const Normalisation raw[] = {{1, 0}, {1, 0}};
  place_bytes(pixels, shape, placement, raw, image);
  return image;
}

float at(const std::vector<float>& image, std::int64_t channel, std::int64_t y, std::int64_t x) {
  return image[static_cast<std::size_t>((channel * 4 + y) * 5 + x)];
}

TEST(Place, WithoutACropIsTheIdentity) {
  const std::vector<float> image = placed({});
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 5; ++x)
      for (std::int64_t c = 0; c < 2; ++c)
        EXPECT_EQ(at(image, c, y, x), static_cast<float>((y * 5 + x) * 2 + c + 1));
}

RC_GTEST_PROP(Place, MovesAndMirrors, ()) {
  const Placement moved{.down = *rc::gen::inRange(-6, 7), .right = *rc::gen::inRange(-7, 8)};
  Placement mirrored = moved;
  mirrored.flip = true;
  const std::vector<float> whole = placed({});
  const std::vector<float> image = placed(moved);
  const std::vector<float> mirror = placed(mirrored);
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t y = 0; y < 4; ++y) {
      for (std::int64_t x = 0; x < 5; ++x) {
        const std::int64_t from_y = y + moved.down;
        const std::int64_t from_x = x + moved.right;
        const bool inside = from_y >= 0 && from_y < 4 && from_x >= 0 && from_x < 5;
        RC_ASSERT(at(image, c, y, x) == (inside ? at(whole, c, from_y, from_x) : 0.0F));
        RC_ASSERT(at(mirror, c, y, 4 - x) == at(image, c, y, x));
      }
    }
  }
}

TEST(Placement, IsUniform) {
  std::map<std::int64_t, int> downs;
  std::map<std::int64_t, int> rights;
  int flips = 0;
  constexpr int draws = 20'000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Placement placement =
        drawn_placement({.crop_padding = 2, .flip = true}, mixed_seed(1, i));
    ++downs[placement.down];
    ++rights[placement.right];
    flips += placement.flip ? 1 : 0;
  }
  EXPECT_NEAR(flips, draws / 2, 300);  // deviation 71
  ASSERT_EQ(downs.size(), 5U);
  for (std::int64_t shift = -2; shift <= 2; ++shift) {
    EXPECT_NEAR(downs[shift], draws / 5, 250) << shift;  // deviation 57
    EXPECT_NEAR(rights[shift], draws / 5, 250) << shift;
  }
}

TEST(Placement, DoesNothingUnlessAsked) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Placement none = drawn_placement({}, seed);
    EXPECT_TRUE(none.down == 0 && none.right == 0 && !none.flip);
    EXPECT_FALSE(drawn_placement({.crop_padding = 3}, seed).flip);
    EXPECT_EQ(drawn_placement({.flip = true}, seed).down, 0);
  }
}

TEST(Synthetic, HasTheSamplesThatAreAskedFor) {
  const auto request = [](const std::string& source) {
    return DatasetRequest{.source = source, .sample = Shape::image(1, 16, 16)};
  };
  const auto many = open_dataset(request("synthetic:5000"));
  EXPECT_EQ(many->size(Part::training), 5000);
  EXPECT_EQ(many->size(Part::test), 5000);
  const auto usual = open_dataset(request("synthetic"));
  EXPECT_EQ(usual->size(Part::training), 1024);
  EXPECT_EQ(image_of(*many, Part::training, 3, {}, 9), image_of(*usual, Part::training, 3, {}, 9));
  for (const char* wrong :
       {"synthetic:", "synthetic:0", "synthetic:-4", "synthetic:many", "synthetic:200000000"})
    EXPECT_NE(test::error_of([&] { return open_dataset(request(wrong)); }), "no error") << wrong;
}

TEST(Synthetic, IsAugmentedByTheSeedOnly) {
  const auto dataset = open_dataset({.source = "synthetic", .sample = Shape::image(1, 16, 16)});
  const Augmentation augmentation{.crop_padding = 4, .flip = true};
  EXPECT_EQ(image_of(*dataset, Part::training, 3, augmentation, 9),
            image_of(*dataset, Part::training, 3, augmentation, 9));
  EXPECT_NE(image_of(*dataset, Part::training, 3, augmentation, 9),
            image_of(*dataset, Part::training, 3, augmentation, 10));
}

}  // namespace
}  // namespace paceline::runtime
