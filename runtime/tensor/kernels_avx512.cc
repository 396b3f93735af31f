// The kernels for AVX-512 (F, BW, DQ, VL). Compiled for those instructions; see kernel_forms.h.
//
// AVX512_BF16's own conversion is not used: it takes subnormals for zero, whatever the mode.
#include <immintrin.h>

#include "runtime/tensor/kernel_forms.h"
#include "runtime/tensor/kernel_loops.h"

namespace paceline::runtime {

extern const KernelForm avx512_kernels;

namespace {

struct Avx512 {
  using Floats = __m512;
  static constexpr std::size_t lanes = 16;

  static Floats broadcast(float value) { return _mm512_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats canonical(Floats value) {
    const __m512 quiet_nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), quiet_nan);
  }
  static bool finite(Floats value) {
    const int nan_or_infinite = 0x01 | 0x08 | 0x10 | 0x80;
    return _mm512_fpclass_ps_mask(value, nan_or_infinite) == 0;
  }
  static __mmask16 first(std::size_t count) { return static_cast<__mmask16>((1U << count) - 1U); }

  struct Fp32 {
    static constexpr std::size_t bytes = 4;
    static Floats load(const unsigned char* from) { return _mm512_loadu_ps(from); }
    static Floats load(const unsigned char* from, std::size_t count) {
      return _mm512_maskz_loadu_ps(first(count), from);
    }
    static void store(unsigned char* to, Floats value) { _mm512_storeu_ps(to, value); }
    static void store(unsigned char* to, Floats value, std::size_t count) {
      _mm512_mask_storeu_ps(to, first(count), value);
    }
  };

  // Formats of 16 bits, by their two conversions.
  template <class Conversion>
  struct Half {
    static constexpr std::size_t bytes = 2;
    static Floats load(const unsigned char* from) {
      return Conversion::decode(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    static Floats load(const unsigned char* from, std::size_t count) {
      return Conversion::decode(_mm256_maskz_loadu_epi16(first(count), from));
    }
    static void store(unsigned char* to, Floats value) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), Conversion::encode(value));
    }
    static void store(unsigned char* to, Floats value, std::size_t count) {
      _mm256_mask_storeu_epi16(to, first(count), Conversion::encode(value));
    }
  };
  struct Fp16Conversion {
    static Floats decode(__m256i halves) { return _mm512_cvtph_ps(halves); }
    static __m256i encode(Floats value) {
      return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
    }
  };
  struct Bf16Conversion {
    static Floats decode(__m256i halves) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    }
    static __m256i encode(Floats value) {
      const __m512i bits = _mm512_castps_si512(value);
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      return _mm512_cvtepi32_epi16(_mm512_srli_epi32(
          _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16));
    }
  };
  using Fp16 = Half<Fp16Conversion>;
  using Bf16 = Half<Bf16Conversion>;

  struct SquareSums {
    __m512d sums[4] = {};
    void accumulate(std::size_t group, Floats value) {
      add_square(sums[2 * group], _mm512_castps512_ps256(value));
      add_square(sums[2 * group + 1], _mm512_extractf32x8_ps(value, 1));
    }
    static void add_square(__m512d& sum, __m256 value) {
      const __m512d wide = _mm512_cvtps_pd(value);
      sum = _mm512_add_pd(sum, _mm512_mul_pd(wide, wide));
    }
    void store(double* lanes_of_sum) const {
      for (std::size_t i = 0; i < 4; ++i) _mm512_storeu_pd(lanes_of_sum + 8 * i, sums[i]);
    }
  };
};

}  // namespace

constinit const KernelForm avx512_kernels = kernel_loops::form<Avx512>("avx512");

}  // namespace paceline::runtime
