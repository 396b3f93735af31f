#include "runtime/training/data/jpeg.h"

#include <turbojpeg.h>

#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

InputError damaged(const std::string& name, const std::string& problem) {
  return InputError(InputPlace{.file = name}, problem,
                    "fetch this image again, write it as JPEG, or remove it");
}

tjhandle started() {
  const tjhandle handle = tjInitDecompress();
  if (handle == nullptr) throw RunError("start the JPEG decoder", tjGetErrorStr2(nullptr));
  return handle;
}

// (C, M, Y, K) as Adobe stores it, 255 for no ink, to (R, G, B) in place.
void to_rgb(ByteVector& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned black = pixels[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] = static_cast<std::uint8_t>((pixels[4 * i + c] * black + 127) / 255);
  }
  pixels.resize(3 * count);
}

}  // namespace

JpegDecoder::JpegDecoder() : handle_(started()) {}

JpegDecoder::~JpegDecoder() {
  tjDestroy(handle_);
}

InputError JpegDecoder::failed(const std::string& name, const std::string& problem) {
  const InputError error = damaged(name, problem + " (" + tjGetErrorStr2(handle_) + ")");
  // TurboJPEG 2.1.5 would go on in the middle of this header when it reads the next.
  const tjhandle fresh = started();
  tjDestroy(handle_);
  handle_ = fresh;
  return error;
}

JpegHeader JpegDecoder::header(std::span<const std::uint8_t> jpeg, const std::string& name) {
  if (jpeg.empty()) throw damaged(name, "is empty");
  JpegHeader header;
  int subsampling = 0;
  int colours = 0;
  // Warnings count as errors here and in decode().
  if (tjDecompressHeader3(handle_, jpeg.data(), jpeg.size(), &header.width, &header.height,
                          &subsampling, &colours) != 0)
    throw failed(name, "no JPEG image");
  constexpr std::int64_t most_pixels = 100'000'000;
  if (std::int64_t{header.width} * header.height > most_pixels)
    throw damaged(name, "an image of " + std::to_string(header.width) + " x " +
                            std::to_string(header.height) + " pixels; at most 100 megapixels are " +
                            "decoded");
  header.is_cmyk = colours == TJCS_CMYK || colours == TJCS_YCCK;
  return header;
}

const RgbImage& JpegDecoder::decode(std::span<const std::uint8_t> jpeg, const JpegHeader& header,
                                    int eighths, const std::string& name) {
  PACELINE_ASSERT(eighths >= 1 && eighths <= 8, "JPEG scales by eighths");
  const tjscalingfactor scale{eighths, 8};
  image_.width = TJSCALED(header.width, scale);
  image_.height = TJSCALED(header.height, scale);
  const int format = header.is_cmyk ? TJPF_CMYK : TJPF_RGB;
  image_.pixels.resize(to_size(image_.width) * to_size(image_.height) *
                       to_size(tjPixelSize[format]));
  if (tjDecompress2(handle_, jpeg.data(), jpeg.size(), image_.pixels.data(), image_.width, 0,
                    image_.height, format, TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
    throw failed(name, "a damaged JPEG image");
  if (header.is_cmyk) to_rgb(image_.pixels);
  return image_;
}

}  // namespace paceline::runtime
