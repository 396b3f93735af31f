// Drawn operations, most of them wrong in one place or two, and the status by which cuDNN takes or
// refuses each: tests/golden/cudnn/refusals.txt, which the toolkit's library wrote. The double has to
// agree (NAME.double), and so has the library that is there (NAME.real).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "models/base/random.h"
#include "tests/cuda/cudnn/parts.h"
#include "tests/support/golden.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::size_t>(high - low + 1)));
  }
  bool one_in(std::int64_t count) { return between(1, count) == 1; }
  // The number, now and then another one near it.
  std::int64_t about(std::int64_t number, std::int64_t rarity = 12) {
    return one_in(rarity) ? number + between(-2, 2) : number;
  }

  // What was drawn, in words.
  std::string text;

 private:
  paceline::Random random_;
};

Made drawn_image(Draw& draw, std::int64_t uid, const Sizes& dims,
                 cudnnDataType_t type = CUDNN_DATA_HALF) {
  TensorPart part{.uid = uid, .type = type};
  part.dims = dims;
  for (std::int64_t& size : *part.dims) size = draw.about(size, 25);
  if (draw.one_in(25)) part.dims->push_back(draw.between(1, 2));
  const Sizes& d = *part.dims;
  if (draw.one_in(30))  // NCHW
    part.strides = Sizes{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
  else if (draw.one_in(40))  // pixels apart
    part.strides = Sizes{2 * d[1] * d[2] * d[3], 1, 2 * d[1] * d[3], 2 * d[1]};
  else if (draw.one_in(40))  // too few or too many
    part.strides = Sizes(draw.one_in(2) ? 3 : 5, 8);
  if (part.dims->size() != 4 && !part.strides) part.strides = Sizes(part.dims->size(), 4);
  if (draw.one_in(20)) part.alignment = draw.between(0, 20);
  if (draw.one_in(20)) part.is_virtual = true;
  if (draw.one_in(40)) part.by_value = true;
  if (draw.one_in(40)) part.alignment.reset();
  draw.text += fmt::format(" {}:{}", uid, fmt::join(*part.dims, "x"));
  if (part.strides) draw.text += fmt::format("/{}", fmt::join(*part.strides, ","));
  if (part.alignment != 16) draw.text += fmt::format(" aligned to {}", part.alignment.value_or(-1));
  if (part.is_virtual) draw.text += " virtual";
  if (part.by_value) draw.text += " by value";
  return make(part);
}

// Leaves one of the parts out, now and then.
void leave_one_out(Draw& draw, std::int64_t rarity, Parts& parts) {
  if (!draw.one_in(rarity) || parts.empty()) return;
  const auto at =
      std::next(parts.begin(), draw.between(0, static_cast<std::int64_t>(parts.size()) - 1));
  draw.text += fmt::format(" without {}", static_cast<int>(at->first));
  parts.erase(at);
}

Sizes drawn_pair(Draw& draw, const char* name, std::int64_t number) {
  Sizes pair = {draw.about(number), draw.about(number)};
  if (draw.one_in(40)) pair.push_back(number);
  draw.text += fmt::format(" {}{}", name, fmt::join(pair, ","));
  return pair;
}

std::int64_t reach(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                   std::int64_t dilation) {
  return (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}

Made drawn_convolution(Draw& draw, const ConvolutionNames& names) {
  const std::int64_t groups = draw.one_in(3) ? 2 : 1;
  const std::int64_t in = draw.between(5, 12);
  const std::int64_t kernel = draw.between(1, 3);
  const std::int64_t stride = draw.between(1, 2);
  const std::int64_t pad = draw.between(0, 2);
  const std::int64_t dilation = draw.one_in(4) ? 2 : 1;
  const std::int64_t out = reach(in, kernel, stride, pad, dilation);
  const std::int64_t channels = groups * draw.between(1, 4) * 4;
  const std::int64_t filters = groups * draw.between(1, 4) * 4;
  WindowPart window;
  window.pre = drawn_pair(draw, "pre ", pad);
  window.post = drawn_pair(draw, "post ", pad);
  window.stride = drawn_pair(draw, "stride ", stride);
  window.dilation = drawn_pair(draw, "dilation ", dilation);
  if (draw.one_in(20)) {
    window.dilation.reset();
    draw.text += " no dilation";
  }
  Parts parts = {{names.x, drawn_image(draw, 1, {3, channels, in, in})},
                 {names.w, drawn_image(draw, 2, {filters, channels / groups, kernel, kernel})},
                 {names.y, drawn_image(draw, 3, {3, filters, out, out})},
                 {names.window, make(window)}};
  leave_one_out(draw, 15, parts);
  return convolution(names, parts);
}

Made drawn_norm(Draw& draw, bool backward) {
  const Sizes shape = {3, 4 * draw.between(1, 4), draw.between(1, 6), draw.between(1, 6)};
  const Sizes channels = {1, shape[1], 1, 1};
  const auto by_channel = [&](std::int64_t uid) {
    return drawn_image(draw, uid, channels, CUDNN_DATA_FLOAT);
  };
  Parts parts;
  if (backward) {
    parts = {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, drawn_image(draw, 1, shape)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, drawn_image(draw, 2, shape)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, drawn_image(draw, 3, shape)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, by_channel(4)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, by_channel(5)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, by_channel(6)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, by_channel(7)},
             {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, by_channel(8)}};
  } else {
    parts = {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, drawn_image(draw, 1, shape)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, drawn_image(draw, 3, shape)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, by_channel(4)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, by_channel(5)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, by_channel(6)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, by_channel(7)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, by_channel(8)},
             {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, make({.uid = 9,
                                                                .dims = Sizes(4, 1),
                                                                .type = CUDNN_DATA_FLOAT,
                                                                .alignment = 4,
                                                                .by_value = true})}};
  }
  leave_one_out(draw, 3, parts);
  Maker maker(backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                       : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  if (draw.one_in(20))
    draw.text += " no mode";
  else
    maker.set(backward ? CUDNN_ATTR_OPERATION_NORM_BWD_MODE : CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
              CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM);
  const bool infers = !backward && draw.one_in(4);
  if (infers) draw.text += " inference";
  if (!backward)
    maker.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
              infers ? CUDNN_NORM_FWD_INFERENCE : CUDNN_NORM_FWD_TRAINING);
  for (const auto& [name, part] : parts) maker.set(name, part);
  return maker.finalise();
}

Made drawn_pool(Draw& draw, bool backward) {
  const std::int64_t in = draw.between(5, 12);
  const std::int64_t kernel = draw.between(2, 3);
  const std::int64_t stride = draw.between(1, 2);
  const std::int64_t pad = draw.between(0, 1);
  const std::int64_t out = reach(in, kernel, stride, pad, 1);
  const Made window =
      Maker(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)
          .set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, CUDNN_RESAMPLE_MAXPOOL)
          .set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2})
          .set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
          .set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, CUDNN_NEG_INF_PAD)
          .set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, drawn_pair(draw, "window ", kernel))
          .set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, drawn_pair(draw, "pre ", pad))
          .set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, drawn_pair(draw, "post ", pad))
          .set(CUDNN_ATTR_RESAMPLE_STRIDES, Sizes{stride, stride})
          .finalise();
  const Made x = drawn_image(draw, 1, {3, 8, in, in});
  const Made y = drawn_image(draw, 2, {3, 8, out, out});
  const Made index = drawn_image(draw, 3, {3, 8, out, out}, CUDNN_DATA_INT8);
  Parts parts = {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x},
                 {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y},
                 {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index},
                 {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, window}};
  if (backward)
    parts = {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, x},
             {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, y},
             {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index},
             {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, window}};
  leave_one_out(draw, 8, parts);
  return operation(backward ? CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR
                            : CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                   parts);
}

Made drawn_pointwise(Draw& draw) {
  constexpr cudnnPointwiseMode_t modes[] = {CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD,
                                            CUDNN_POINTWISE_RELU_BWD};
  Parts parts;
  std::int64_t uid = 0;
  for (const auto name :
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_DYDESC})
    if (!draw.one_in(3)) {
      draw.text += fmt::format(" {}", static_cast<int>(name));
      parts[name] = drawn_image(draw, ++uid, {3, 8, 4, 4});
    }
  const cudnnPointwiseMode_t mode = modes[draw.between(0, 2)];
  draw.text += fmt::format(" mode {}", static_cast<int>(mode));
  return pointwise(mode, parts);
}

struct Kind {
  const char* name;
  Made (*make)(Draw& draw);
};
constexpr Kind kinds[] = {
    {"convolution", [](Draw& d) { return drawn_convolution(d, forward_names); }},
    {"data-gradient", [](Draw& d) { return drawn_convolution(d, data_names); }},
    {"filter-gradient", [](Draw& d) { return drawn_convolution(d, filter_names); }},
    {"norm", [](Draw& d) { return drawn_norm(d, false); }},
    {"norm-gradient", [](Draw& d) { return drawn_norm(d, true); }},
    {"pool", [](Draw& d) { return drawn_pool(d, false); }},
    {"pool-gradient", [](Draw& d) { return drawn_pool(d, true); }},
    {"pointwise", [](Draw& d) { return drawn_pointwise(d); }}};

TEST(CudnnOperation, IsTakenOrRefusedAsWritten) {
  constexpr std::uint64_t rounds = 60;
  std::string text;
  for (const Kind& kind : kinds)
    for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
      Draw draw(seed);
      const cudnnStatus_t status = kind.make(draw).status;
      text += fmt::format("{} {}:{}: {}\n", kind.name, seed, draw.text,
                          std::string(cudnnGetErrorString(status)).substr(13));
    }
  paceline::test::expect_golden("cudnn/refusals.txt", text);
}

}  // namespace
