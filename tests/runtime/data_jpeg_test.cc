// Photographs: decoding, cropping, resizing, and files that are wrong by accident or on purpose.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "models/base/seeds.h"
#include "runtime/training/data/crop.h"
#include "runtime/training/data/jpeg.h"
#include "runtime/training/data/photograph.h"
#include "tests/support/error_of.h"
#include "tests/support/jpeg_files.h"

namespace paceline::runtime {
namespace {

using models::Shape;
using test::jpeg_of;
using test::JpegKind;
using test::smooth_pixels;

RgbImage decoded(const ByteVector& jpeg, int eighths = 8) {
  JpegDecoder decoder;
  return decoder.decode(jpeg, decoder.header(jpeg, "f"), eighths, "f");
}
std::string error(const ByteVector& jpeg) {
  return test::error_of([&] { return decoded(jpeg); });
}
int largest_difference(const ByteVector& a, const ByteVector& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(int{a[i]} - int{b[i]}));
  return largest;
}

TEST(Jpeg, RoundTrips) {
  const ByteVector pixels = smooth_pixels(48, 70);
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    for (const int subsampling : {TJSAMP_444, TJSAMP_420}) {
      const RgbImage image =
          decoded(jpeg_of(pixels, 48, 70, {.subsampling = subsampling, .flags = flags}));
      EXPECT_EQ(image.height, 48);
      EXPECT_EQ(image.width, 70);
      EXPECT_LE(largest_difference(image.pixels, pixels), 6);
    }
  }
}

TEST(Jpeg, ScalesWhileItDecodes) {
  const ByteVector jpeg = jpeg_of(smooth_pixels(128, 200), 128, 200);
  for (const int eighths : {1, 2, 4}) {
    const RgbImage image = decoded(jpeg, eighths);
    EXPECT_EQ(image.height, 16 * eighths);
    EXPECT_EQ(image.width, 25 * eighths);
    const ByteVector expected = smooth_pixels(16 * eighths, 25 * eighths);
    EXPECT_LE(largest_difference(image.pixels, expected), 24) << "off by half a pixel";
  }
}

TEST(Jpeg, GreyscaleBecomesRgb) {
  ByteVector grey;
  for (int i = 0; i < 32 * 32; ++i) grey.push_back(static_cast<std::uint8_t>(i / 5));
  const RgbImage image =
      decoded(jpeg_of(grey, 32, 32, {.format = TJPF_GRAY, .subsampling = TJSAMP_GRAY}));
  for (std::size_t i = 0; i < grey.size(); ++i) {
    EXPECT_NEAR(image.pixels[3 * i], grey[i], 8);
    EXPECT_EQ(image.pixels[3 * i], image.pixels[3 * i + 1]);
    EXPECT_EQ(image.pixels[3 * i], image.pixels[3 * i + 2]);
  }
}

TEST(Jpeg, CmykOfAdobeBecomesRgb) {
  ByteVector cmyk;
  for (int i = 0; i < 16 * 16; ++i) cmyk.insert(cmyk.end(), {200, 100, 50, 128});
  const RgbImage image = decoded(jpeg_of(cmyk, 16, 16, {.format = TJPF_CMYK}));
  ASSERT_EQ(image.pixels.size(), 16U * 16 * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    EXPECT_NEAR(image.pixels[i], 200 * 128 / 255, 3);
    EXPECT_NEAR(image.pixels[i + 1], 100 * 128 / 255, 3);
    EXPECT_NEAR(image.pixels[i + 2], 50 * 128 / 255, 3);
  }
}

TEST(Jpeg, SaysWhatIsWrong) {
  const std::string remedy = "; fetch this image again, write it as JPEG, or remove it";
  EXPECT_EQ(error({}), "f: is empty" + remedy);
  EXPECT_EQ(error({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}),
            "f: no JPEG image (Not a JPEG file: starts with 0x89 0x50)" + remedy);
  ByteVector jpeg = jpeg_of(smooth_pixels(64, 64), 64, 64);
  jpeg.resize(jpeg.size() / 2);
  EXPECT_EQ(error(jpeg), "f: a damaged JPEG image (Premature end of JPEG file)" + remedy);
}

// The size is in the frame header, 5 bytes after the marker 0xffc0.
TEST(Jpeg, RefusesGiantImagesBeforeItDecodes) {
  ByteVector jpeg = jpeg_of(smooth_pixels(16, 16), 16, 16);
  const ByteVector marker{0xff, 0xc0};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), marker.begin(), marker.end());
  ASSERT_NE(frame, jpeg.end());
  for (int i = 5; i < 9; ++i) frame[i] = 0xf0;
  EXPECT_EQ(error(jpeg),
            "f: an image of 61680 x 61680 pixels; at most 100 megapixels are decoded; fetch this "
            "image again, write it as JPEG, or remove it");
}

// A truncated image also leaves no trace: the next image is decoded as before.
TEST(Jpeg, EveryTruncationIsAnError) {
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const ByteVector whole = jpeg_of(smooth_pixels(24, 24), 24, 24, {.flags = flags});
    const RgbImage expected = decoded(whole);
    JpegDecoder decoder;
    const auto decode = [&decoder](std::span<const std::uint8_t> jpeg) {
      return decoder.decode(jpeg, decoder.header(jpeg, "f"), 8, "f");
    };
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(test::error_of([&] { return decode(std::span(whole).first(size)); }), "no error")
          << size;
      ASSERT_EQ(decode(whole).pixels, expected.pixels) << size;
    }
  }
}

TEST(Jpeg, DamageIsAnErrorOrAnotherImage) {
  std::mt19937 random(1);
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const ByteVector whole = jpeg_of(smooth_pixels(24, 24), 24, 24, {.flags = flags});
    for (int i = 0; i < 2000; ++i) {
      ByteVector bytes = whole;
      for (std::size_t flips = 1 + random() % 3; flips > 0; --flips)
        bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
      try {
        const RgbImage image = decoded(bytes);
        EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(image.height) *
                                           static_cast<std::size_t>(image.width) * 3);
      } catch (const InputError&) {
      }
    }
  }
}

RgbImage smooth_image(int height, int width) {
  return {.height = height, .width = width, .pixels = smooth_pixels(height, width)};
}
ByteVector resampled(const RgbImage& image, const Region& region, int height, int width) {
  Resampler resampler;
  ByteVector result;
  resampler.resample(image, region, height, width, result);
  return result;
}

TEST(Resampler, KeepsWhatHasTheSize) {
  const RgbImage image = smooth_image(20, 31);
  EXPECT_EQ(resampled(image, {0, 0, 31, 20}, 20, 31), image.pixels);
  const ByteVector part = resampled(image, {3, 5, 8, 6}, 6, 8);
  for (std::size_t y = 0; y < 6; ++y)
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_EQ(part[y * 24 + i], image.pixels[(y + 5) * 93 + 9 + i]);
}

// A wave stays the same wave, in any size.
TEST(Resampler, ShrinksAndEnlarges) {
  const RgbImage image = smooth_image(120, 90);
  for (const int height : {7, 30, 119, 200})
    for (const int width : {5, 45, 89, 150}) {
      const ByteVector expected = smooth_pixels(height, width);
      EXPECT_LE(largest_difference(resampled(image, {0, 0, 90, 120}, height, width), expected), 40)
          << height << ' ' << width;
    }
}

// One column of four is white: a quarter of white from afar. Looking at the nearest columns only
// would make it black or half white.
TEST(Resampler, ShrinksWithoutAliasing) {
  RgbImage image{.height = 64, .width = 64, .pixels = {}};
  for (int i = 0; i < 64 * 64; ++i)
    image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(i % 4 == 0 ? 255 : 0));
  for (const std::uint8_t value : resampled(image, {8, 8, 48, 48}, 12, 12))
    EXPECT_NEAR(value, 64, 1);
}

// By hand: from 2 pixels to 4, centres at 1/4, 3/4, 5/4, 7/4; outside nothing counts.
TEST(Resampler, IsBilinear) {
  const RgbImage image{.height = 1, .width = 2, .pixels = {0, 0, 0, 200, 100, 40}};
  EXPECT_EQ(resampled(image, {0, 0, 2, 1}, 1, 4),
            (ByteVector{0, 0, 0, 50, 25, 10, 150, 75, 30, 200, 100, 40}));
}

TEST(Region, OfTheMiddle) {
  const Shape square = Shape::image(3, 224, 224);
  const Region exact = middle_region(256, 256, square);
  EXPECT_EQ(exact.left, 16);
  EXPECT_EQ(exact.top, 16);
  EXPECT_EQ(exact.width, 224);
  EXPECT_EQ(exact.height, 224);
  const Region wide = middle_region(256, 512, square);
  EXPECT_EQ(wide.left, 144);
  EXPECT_EQ(wide.width, 224);
  const Region tall = middle_region(640, 320, Shape::image(3, 112, 224));
  EXPECT_EQ(tall.width, 280);
  EXPECT_EQ(tall.height, 140);
}

TEST(Region, AtRandomIsUniformInAreaAndPlace) {
  constexpr int draws = 20'000;
  const Shape square = Shape::image(3, 224, 224);
  std::map<int, int> areas;
  double left = 0;
  double log_ratio = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Region region = random_region(1000, 1000, square, mixed_seed(5, i));
    const double area = region.width * region.height / 1e6;
    const double ratio = region.width / region.height;
    EXPECT_GE(area, 0.08);
    EXPECT_LE(area, 1);
    EXPECT_GE(ratio, 0.75 - 1e-9);
    EXPECT_LE(ratio, 4.0 / 3 + 1e-9);
    EXPECT_GE(region.left, 0);
    EXPECT_LE(region.left + region.width, 1000);
    EXPECT_LE(region.top + region.height, 1000);
    ++areas[static_cast<int>((area - 0.08) / 0.23)];
    left += region.left + region.width / 2;
    log_ratio += std::log(ratio);
  }
  // Large areas fit only with sides near one another, so they are drawn again, and are fewer.
  EXPECT_NEAR(areas[0], areas[1], 500);
  EXPECT_GT(areas[3], draws / 8);
  EXPECT_NEAR(left / draws, 500, 5);
  EXPECT_NEAR(log_ratio / draws, 0, 0.01);
}

TEST(Region, OfAnImageThatIsAlmostALineIsItsMiddle) {
  const Region region = random_region(10, 1000, Shape::image(3, 224, 224), 1);
  EXPECT_EQ(region.height, 10);
  EXPECT_NEAR(region.width, 10 * 4.0 / 3, 1e-9);
  EXPECT_NEAR(region.left, (1000 - region.width) / 2, 1e-9);
}

TEST(Region, DecodesAtTheLeastScaleThatIsEnough) {
  const Shape square = Shape::image(3, 224, 224);
  const auto eighths = [&](double width, double height) {
    return eighths_enough({0, 0, width, height}, square);
  };
  EXPECT_EQ(eighths(1792, 1792), 1);
  EXPECT_EQ(eighths(1791, 1792), 2);
  EXPECT_EQ(eighths(448, 896), 4);
  EXPECT_EQ(eighths(447, 896), 8);
  EXPECT_EQ(eighths(20, 20), 8);
}

std::vector<float> read(const ByteVector& jpeg, const Shape& shape,
                        const Augmentation& augmentation = {}, std::uint64_t seed = 0) {
  PhotographReader reader;
  std::vector<float> image(static_cast<std::size_t>(shape.elements()));
  reader.read(jpeg, "f", shape, augmentation, seed, image);
  return image;
}

// An image of 256/224 of the size is cropped and nothing else.
TEST(Photograph, IsNormalisedByChannel) {
  const Shape shape = Shape::image(3, 56, 56);
  const ByteVector jpeg = jpeg_of(smooth_pixels(64, 64), 64, 64);
  const std::vector<float> image = read(jpeg, shape);
  const RgbImage whole = decoded(jpeg);
  const double mean[] = {0.485, 0.456, 0.406};
  const double deviation[] = {0.229, 0.224, 0.225};
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < 56; ++y)
      for (std::size_t x = 0; x < 56; ++x)
        EXPECT_NEAR(image[(c * 56 + y) * 56 + x],
                    (whole.pixels[((y + 4) * 64 + x + 4) * 3 + c] / 255.0 - mean[c]) / deviation[c],
                    1e-5);
}

TEST(Photograph, OfAnySizeLooksTheSame) {
  const Shape shape = Shape::image(3, 28, 28);
  const std::vector<float> expected = read(jpeg_of(smooth_pixels(32, 32), 32, 32), shape);
  for (const int size : {9, 40, 63, 100, 256, 700}) {
    const std::vector<float> image = read(jpeg_of(smooth_pixels(size, size), size, size), shape);
    for (std::size_t i = 0; i < image.size(); ++i) ASSERT_NEAR(image[i], expected[i], 0.4) << size;
  }
}

TEST(Photograph, IsAugmentedByTheSeed) {
  const Shape shape = Shape::image(3, 24, 32);
  const ByteVector jpeg = jpeg_of(smooth_pixels(100, 120), 100, 120);
  const Augmentation crop{.random_resized_crop = true};
  EXPECT_EQ(read(jpeg, shape, crop, 1), read(jpeg, shape, crop, 1));
  EXPECT_NE(read(jpeg, shape, crop, 1), read(jpeg, shape, crop, 2));
  EXPECT_EQ(read(jpeg, shape, {}, 1), read(jpeg, shape, {}, 2));
  int flips = 0;
  const std::vector<float> image = read(jpeg, shape);
  std::vector<float> mirror = image;
  for (std::size_t row = 0; row < mirror.size(); row += 32)
    std::reverse(&mirror[row], &mirror[row] + 32);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> flipped = read(jpeg, shape, {.flip = true}, seed);
    EXPECT_TRUE(flipped == image || flipped == mirror);
    flips += flipped == mirror ? 1 : 0;
  }
  EXPECT_NEAR(flips, 50, 20);
}

}  // namespace
}  // namespace paceline::runtime
