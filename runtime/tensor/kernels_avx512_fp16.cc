// The kernel for AVX-512 FP16 that differs from AVX-512's: the sum of halves, in halves. Compiled
// for those instructions; see kernel_forms.h.
//
// One rounding from the exact sum gives the bits of two, to FP32 and then to FP16: FP32 has
// 24 >= 2 x 11 + 2 digits, so the first rounding never moves a sum onto, or over, a tie of FP16
// (S. Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30(3), 1995). All
// 2^32 pairs were tried once, with no difference; kernels_test.cc tries some of them, without this
// instruction set. The instructions keep subnormals in every mode.
#include <immintrin.h>

#include "runtime/tensor/kernel_forms.h"

namespace paceline::runtime {

void add_fp16_in_fp16(void* target, const void* source, std::size_t count);

namespace {

__m512i sum(__m512i a, __m512i b) {
  const __m512h value = _mm512_add_ph(_mm512_castsi512_ph(a), _mm512_castsi512_ph(b));
  return _mm512_mask_mov_epi16(_mm512_castph_si512(value),
                               _mm512_cmp_ph_mask(value, value, _CMP_UNORD_Q),
                               _mm512_set1_epi16(0x7e00));
}

}  // namespace

void add_fp16_in_fp16(void* target_memory, const void* source_memory, std::size_t count) {
  auto* target = static_cast<unsigned char*>(target_memory);
  const auto* source = static_cast<const unsigned char*>(source_memory);
  for (; count >= 32; count -= 32, target += 64, source += 64) {
    _mm512_storeu_si512(target, sum(_mm512_loadu_si512(target), _mm512_loadu_si512(source)));
  }
  const __mmask32 rest = (1U << count) - 1U;
  _mm512_mask_storeu_epi16(
      target, rest,
      sum(_mm512_maskz_loadu_epi16(rest, target), _mm512_maskz_loadu_epi16(rest, source)));
}

}  // namespace paceline::runtime
