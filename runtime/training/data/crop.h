// Chooses the region of an image of any size that a network sees, and brings it to the network's
// size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/training/data/dataset.h"
#include "runtime/training/data/jpeg.h"

namespace paceline::runtime {

// A region of an image in pixels. Fractions of a pixel count.
struct Region {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// The middle of an image of height x width: the largest region of the proportions of `shape`, and
// of that 224/256, which is resizing to 256/224 of the size and cropping (He 2015, sec. 3.4).
[[nodiscard]] Region middle_region(int height, int width, const models::Shape& shape);

// Draws a region anywhere in the image (Szegedy 2014, sec. 6): its area is uniform in 8 % to 100 %
// of the image's, and the ratio of its sides, over that of `shape`, is uniform in its logarithm
// between 3/4 and 4/3. Where ten draws do not fit, it is the largest region in the middle whose
// ratio is in the range. The result depends on the arguments only.
[[nodiscard]] Region random_region(int height, int width, const models::Shape& shape,
                                   std::uint64_t seed);

// The least scale, in eighths of 1, 2, 4 or 8, at which the region has at least the size of
// `shape`; 8 if none has. Those four are the ones for which libjpeg-turbo has vector code: with the
// other eighths too, photographs of 500 x 375 took 10 % longer (data_benchmark, 2026-11-21).
[[nodiscard]] int eighths_enough(const Region& region, const models::Shape& shape);

// Resizes by a triangle filter as wide as two pixels of the image or of the result, whichever are
// larger: bilinear when it enlarges, without aliasing when it shrinks. Keeps its memory. One thread
// at a time.
class Resampler {
 public:
  // `region` of `image` to `result` (height x width x 3). The region lies in the image.
  void resample(const RgbImage& image, const Region& region, int height, int width,
                ByteVector& result);

 private:
  // Result i is the sum of weight[k] * input[first + k] over k in [begin, end).
  struct Taps {
    int first = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Filter {
    std::vector<Taps> taps;  // of each result
    std::vector<float> weights;

    void set(double start, double length, int inputs, int results);
  };

  void shrink_rows(const RgbImage& image, int first_row, int rows, int width);

  Filter across_;
  Filter down_;
  std::vector<float> rows_;  // (rows of the region, width of the result, 3)
  std::vector<float> row_;   // one of the result
};

}  // namespace paceline::runtime
