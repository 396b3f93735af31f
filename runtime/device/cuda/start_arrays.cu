// Tests: tests/cuda/device/kernels_test.cc.
#include "runtime/device/cuda/bodies/arrays.h"
#include "runtime/device/cuda/bodies/cast_many.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/start.h"

namespace paceline::runtime::cuda {
namespace {

template <template <class, class> class Body, class Target, class Source>
cudaError_t start(cudaStream_t stream, const void* source, void* target, std::uint64_t elements) {
  using TheBody = Body<Target, Source>;
  const Pieces pieces =
      pieces_of(TheBody::width, elements, target, sizeof(Target), source, sizeof(Source));
  return start_elements(
      stream, TheBody{static_cast<const Source*>(source), static_cast<Target*>(target), pieces},
      elements == 0 ? 0 : pieces.count());
}

template <class Target, class Source>
cudaError_t start_many(cudaStream_t stream, const CastTiles& t, const CastTable& table) {
  const CastManyBody<Target, Source> body{t.tiles, t.tile_count, table.casts().data(),
                                          static_cast<std::uint32_t>(table.casts().size())};
  return start_phased(stream, body, {.blocks = t.tile_count, .threads = 256});
}

template <class Source>
cudaError_t unscale(cudaStream_t stream, const void* source, float* target, float factor,
                    std::uint64_t elements, std::uint32_t* found) {
  using Body = UnscaleBody<Source>;
  const Pieces pieces =
      pieces_of(Body::width, elements, target, sizeof(float), source, sizeof(Source));
  return start_elements(stream,
                        Body{static_cast<const Source*>(source), target, factor, found, pieces},
                        elements == 0 ? 0 : pieces.count());
}

}  // namespace

cudaError_t start_cast(cudaStream_t stream, const void* source, NumberType source_type,
                       void* target, NumberType target_type, std::uint64_t elements) {
  if (source_type == NumberType::fp32 && target_type == NumberType::fp16)
    return start<CastBody, Fp16, float>(stream, source, target, elements);
  if (source_type == NumberType::fp32 && target_type == NumberType::bf16)
    return start<CastBody, Bf16, float>(stream, source, target, elements);
  if (source_type == NumberType::fp16 && target_type == NumberType::fp32)
    return start<CastBody, float, Fp16>(stream, source, target, elements);
  if (source_type == NumberType::bf16 && target_type == NumberType::fp32)
    return start<CastBody, float, Bf16>(stream, source, target, elements);
  return cudaErrorInvalidValue;
}

cudaError_t start_add(cudaStream_t stream, const void* source, NumberType source_type, void* target,
                      NumberType target_type, std::uint64_t elements) {
  if (source_type == target_type) {
    switch (source_type) {
      case NumberType::fp32:
        return start<AddBody, float, float>(stream, source, target, elements);
      case NumberType::fp16:
        return start<AddBody, Fp16, Fp16>(stream, source, target, elements);
      case NumberType::bf16:
        return start<AddBody, Bf16, Bf16>(stream, source, target, elements);
    }
  }
  if (target_type != NumberType::fp32) return cudaErrorInvalidValue;
  return source_type == NumberType::fp16
             ? start<AddBody, float, Fp16>(stream, source, target, elements)
             : start<AddBody, float, Bf16>(stream, source, target, elements);
}

cudaError_t start_fill(cudaStream_t stream, float* target, float value, std::uint64_t elements) {
  const Pieces pieces = pieces_of(FillBody::width, elements, target, sizeof(float));
  return start_elements(stream, FillBody{target, value, pieces},
                        elements == 0 ? 0 : pieces.count());
}

cudaError_t start_find_not_finite(cudaStream_t stream, const float* values, std::uint64_t elements,
                                  std::uint32_t* found) {
  const Pieces pieces = pieces_of(FindNotFiniteBody::width, elements, values, sizeof(float));
  return start_elements(stream, FindNotFiniteBody{values, found, pieces},
                        elements == 0 ? 0 : pieces.count());
}

cudaError_t start_unscale(cudaStream_t stream, const void* source, NumberType source_type,
                          float* target, float factor, std::uint64_t elements,
                          std::uint32_t* found) {
  switch (source_type) {
    case NumberType::fp32:
      return unscale<float>(stream, source, target, factor, elements, found);
    case NumberType::fp16:
      return unscale<Fp16>(stream, source, target, factor, elements, found);
    case NumberType::bf16:
      return unscale<Bf16>(stream, source, target, factor, elements, found);
  }
  return cudaErrorInvalidValue;
}

cudaError_t start_cast_many(cudaStream_t stream, const CastTiles& tiles, const CastTable& table) {
  if (tiles.tile_count == 0) return cudaSuccess;
  const NumberType source = table.source_type();
  const NumberType target = table.target_type();
  if (source == target)
    return source == NumberType::fp32 ? start_many<float, float>(stream, tiles, table)
                                      : start_many<Fp16, Fp16>(stream, tiles, table);
  if (source == NumberType::fp32)
    return target == NumberType::fp16 ? start_many<Fp16, float>(stream, tiles, table)
                                      : start_many<Bf16, float>(stream, tiles, table);
  if (target != NumberType::fp32) return cudaErrorInvalidValue;
  return source == NumberType::fp16 ? start_many<float, Fp16>(stream, tiles, table)
                                    : start_many<float, Bf16>(stream, tiles, table);
}

}  // namespace paceline::runtime::cuda
