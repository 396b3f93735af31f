// JPEG files for tests, written by libjpeg-turbo.
#pragma once

#include <turbojpeg.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace paceline::test {

// (height, width, 3): each colour another slow wave, which JPEG keeps to a few steps of 255.
inline std::vector<std::uint8_t> smooth_pixels(int height, int width, double phase = 0) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        pixels.push_back(static_cast<std::uint8_t>(
            128 + 60 * std::sin(phase + c + 5.0 * x / width) + 40 * std::cos(4.0 * y / height)));
  return pixels;
}

struct JpegKind {
  int format = TJPF_RGB;  // of the pixels
  int subsampling = TJSAMP_444;
  int quality = 95;
  int flags = 0;
};

inline std::vector<std::uint8_t> jpeg_of(const std::vector<std::uint8_t>& pixels, int height,
                                         int width, const JpegKind& kind = {}) {
  const tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(handle, pixels.data(), width, 0, height, kind.format, &bytes,
                                 &size, kind.subsampling, kind.quality, kind.flags);
  const std::string error = tjGetErrorStr2(handle);
  std::vector<std::uint8_t> result;
  if (status == 0) result.assign(bytes, bytes + size);
  tjFree(bytes);
  tjDestroy(handle);
  if (status != 0) throw std::runtime_error(error);
  return result;
}

}  // namespace paceline::test
