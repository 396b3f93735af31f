// JPEG by libjpeg-turbo: RGB, greyscale, and the CMYK of Adobe, baseline and progressive.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/base/error.h"
#include "runtime/training/data/gzip.h"

namespace paceline::runtime {

// (height, width, 3), one byte a value.
struct RgbImage {
  int height = 0;
  int width = 0;
  ByteVector pixels;
};

struct JpegHeader {
  int height = 0;
  int width = 0;
  bool is_cmyk = false;
};

// Decodes one image after the other in the same memory. One thread at a time. `name` is that of the
// image for messages. Both functions throw InputError that names the image if it is no JPEG, is
// damaged in any way that the library notices (it ends early, for one), or has more than 100
// megapixels or 500 scans.
class JpegDecoder {
 public:
  JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder();

  [[nodiscard]] JpegHeader header(std::span<const std::uint8_t> jpeg, const std::string& name);

  // Decodes at `eighths` (1 to 8) eighths of the size, rounded up. Greyscale becomes RGB. CMYK,
  // which Adobe's programs store inverted, becomes R = C K / 255 and so on. Valid until the next
  // call.
  [[nodiscard]] const RgbImage& decode(std::span<const std::uint8_t> jpeg, const JpegHeader& header,
                                       int eighths, const std::string& name);

 private:
  // An error with what the library says. The library is started anew after it.
  [[nodiscard]] InputError failed(const std::string& name, const std::string& problem);

  void* handle_;  // TurboJPEG's
  RgbImage image_;
};

}  // namespace paceline::runtime
