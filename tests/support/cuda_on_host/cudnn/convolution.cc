// The three products of a convolution, by rows of windows (im2col) and products of matrices.
#include <algorithm>
#include <atomic>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/engines.h"
#include "tests/support/cuda_on_host/cudnn/interpreter.h"
#include "tests/support/cuda_on_host/cudnn/product.h"

namespace cuda_on_host::cudnn {
namespace {

constexpr std::int64_t pixels_at_once = 256;
constexpr std::int64_t terms_at_once = 256;

// A convolution's sizes, of one of its groups where they differ.
struct Shape {
  std::int64_t groups, channels, filters;  // channels and filters of a group
  std::int64_t height, width;              // of the window
  std::int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;

  [[nodiscard]] std::int64_t row() const { return height * width * channels; }
};

Shape shape_of(const Node& node, const Tensor& x, const Tensor& w) {
  const auto& stride = node.list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto& pad = node.list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto& dilation = node.list(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const std::int64_t groups = x.dims[1] / w.dims[1];
  return {groups, w.dims[1], w.dims[0] / groups, w.dims[2],  w.dims[3], stride[0], stride[1],
          pad[0], pad[1],    dilation[0],        dilation[1]};
}

// Calls visit(row, y of the window, x of the window, n, y, x) for each place of the windows of output
// pixels [first, end) that lies in the image.
template <class Visit>
void for_each_place(const Shape& s, const Values& x, const Values& y, std::int64_t first,
                    std::int64_t end, Visit visit) {
  for (std::int64_t pixel = first; pixel < end; ++pixel) {
    const std::int64_t n = pixel / (y.h * y.w);
    const std::int64_t top = pixel / y.w % y.h * s.stride_y - s.pad_y;
    const std::int64_t left = pixel % y.w * s.stride_x - s.pad_x;
    for (std::int64_t i = 0; i < s.height; ++i) {
      const std::int64_t iy = top + i * s.dilation_y;
      if (iy < 0 || iy >= x.h) continue;
      for (std::int64_t j = 0; j < s.width; ++j) {
        const std::int64_t ix = left + j * s.dilation_x;
        if (ix >= 0 && ix < x.w)
          visit((pixel - first) * s.row() + (i * s.width + j) * s.channels, n, iy, ix);
      }
    }
  }
}

// The windows of output pixels [first, end) as rows.
void gather(const Shape& s, const Values& x, const Values& y, std::int64_t group,
            std::int64_t first, std::int64_t end, std::vector<float>& rows) {
  rows.assign(static_cast<std::size_t>((end - first) * s.row()), 0.F);
  for_each_place(s, x, y, first, end,
                 [&](std::int64_t to, std::int64_t n, std::int64_t iy, std::int64_t ix) {
                   std::copy_n(x.at(n, iy, ix) + group * s.channels, s.channels, rows.begin() + to);
                 });
}

// Sums in blocks of terms; what is summed so far is rounded to the type between them.
void add_in_blocks(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const float* b,
                   std::int64_t b_row, float* c, std::int64_t c_row,
                   const cudnnDataType_t* narrow) {
  for (std::int64_t first = 0; first < k; first += terms_at_once) {
    const std::int64_t terms = std::min(terms_at_once, k - first);
    add_product(m, n, terms, {a.data + first * a.column, a.row, a.column}, b + first * b_row, b_row,
                c, c_row);
    if (narrow == nullptr) continue;
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<float> sums(c + i * c_row, c + i * c_row + n);
      round_to(*narrow, sums);
      std::copy(sums.begin(), sums.end(), c + i * c_row);
    }
  }
}

// Weights of a group with the filters last: (window, channel) by filter.
std::vector<float> filters_last(const Shape& s, const Values& w, std::int64_t group) {
  std::vector<float> turned(static_cast<std::size_t>(s.row() * s.filters));
  const float* const from = w.data.data() + group * s.filters * s.row();
  for (std::int64_t k = 0; k < s.filters; ++k)
    for (std::int64_t i = 0; i < s.row(); ++i)
      turned[static_cast<std::size_t>(i * s.filters + k)] = from[k * s.row() + i];
  return turned;
}

void forward(const Shape& s, const Values& x, const Values& w, Values& y,
             const cudnnDataType_t* narrow) {
  std::vector<float> rows;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const std::vector<float> turned = filters_last(s, w, g);
    for (std::int64_t first = 0; first < y.pixels(); first += pixels_at_once) {
      const std::int64_t end = std::min(first + pixels_at_once, y.pixels());
      gather(s, x, y, g, first, end, rows);
      add_in_blocks(end - first, s.filters, s.row(), {rows.data(), s.row()}, turned.data(),
                    s.filters, y.data.data() + first * y.c + g * s.filters, y.c, narrow);
    }
  }
}

void data_gradient(const Shape& s, const Values& w, const Values& dy, Values& dx,
                   const cudnnDataType_t* narrow) {
  std::vector<float> rows;
  for (std::int64_t g = 0; g < s.groups; ++g)
    for (std::int64_t first = 0; first < dy.pixels(); first += pixels_at_once) {
      const std::int64_t end = std::min(first + pixels_at_once, dy.pixels());
      rows.assign(static_cast<std::size_t>((end - first) * s.row()), 0.F);
      add_in_blocks(end - first, s.row(), s.filters,
                    {dy.data.data() + first * dy.c + g * s.filters, dy.c},
                    w.data.data() + g * s.filters * s.row(), s.row(), rows.data(), s.row(), narrow);
      for_each_place(s, dx, dy, first, end,
                     [&](std::int64_t from, std::int64_t n, std::int64_t iy, std::int64_t ix) {
                       float* const to = dx.at(n, iy, ix) + g * s.channels;
                       for (std::int64_t c = 0; c < s.channels; ++c)
                         to[c] += rows[static_cast<std::size_t>(from + c)];
                     });
    }
}

void filter_gradient(const Shape& s, const Values& x, const Values& dy, Values& dw,
                     const cudnnDataType_t* narrow) {
  std::vector<float> rows;
  const auto size = static_cast<std::size_t>(s.row() * s.filters);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    std::vector<double> sums(size);
    for (std::int64_t first = 0; first < dy.pixels(); first += pixels_at_once) {
      const std::int64_t end = std::min(first + pixels_at_once, dy.pixels());
      gather(s, x, dy, g, first, end, rows);
      std::vector<float> part(size);
      add_in_blocks(s.row(), s.filters, end - first, {rows.data(), 1, s.row()},
                    dy.data.data() + first * dy.c + g * s.filters, dy.c, part.data(), s.filters,
                    narrow);
      std::transform(sums.begin(), sums.end(), part.begin(), sums.begin(),
                     [](double sum, float more) { return sum + more; });
    }
    float* const to = dw.data.data() + g * s.filters * s.row();
    for (std::int64_t k = 0; k < s.filters; ++k)
      for (std::int64_t i = 0; i < s.row(); ++i)
        to[k * s.row() + i] = static_cast<float>(sums[static_cast<std::size_t>(i * s.filters + k)]);
  }
}

// The last bits of sums whose order is not the same in two runs.
void unsettle(std::vector<float>& values) {
  static std::atomic<std::uint32_t> runs = 0;
  std::uint32_t random = 2654435761U * ++runs;
  for (float& value : values) {
    random = random * 1664525U + 1013904223U;
    value *= 1 + (static_cast<float>(random >> 30U) - 1.5F) * 0x1p-22F;
  }
}

}  // namespace

void compute_convolution(const Node& node, std::int64_t engine, AllValues& values) {
  const bool is_forward = node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  const bool gives_data = node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const Tensor& x = node.tensor(is_forward   ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X
                                : gives_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX
                                             : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  const Tensor& w = node.tensor(is_forward   ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W
                                : gives_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W
                                             : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  const Tensor& y = node.tensor(is_forward   ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y
                                : gives_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
                                             : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  const Shape shape = shape_of(node, x, w);
  const auto operand = [&](const Tensor& tensor) {
    Values taken = values.at(tensor.uid);
    if (engine != exact_engine) round_to_tf32(taken.data);  // changes nothing in 16 bits
    return taken;
  };
  const cudnnDataType_t storage = is_forward ? x.type : y.type;
  const cudnnDataType_t* const narrow = engine == narrow_engine ? &storage : nullptr;
  const Tensor& out = is_forward ? y : gives_data ? x : w;
  Values result = Values::of(out);
  if (is_forward)
    forward(shape, operand(x), operand(w), result, narrow);
  else if (gives_data)
    data_gradient(shape, operand(w), operand(y), result, narrow);
  else
    filter_gradient(shape, operand(x), operand(y), result, narrow);
  if (engine == unsteady_engine) unsettle(result.data);
  values[out.uid] = std::move(result);
}

}  // namespace cuda_on_host::cudnn
