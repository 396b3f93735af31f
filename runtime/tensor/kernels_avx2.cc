// The kernels for AVX2 with F16C. Compiled for those instructions; see kernel_forms.h.
#include <immintrin.h>

#include "runtime/tensor/kernel_forms.h"
#include "runtime/tensor/kernel_loops.h"

namespace paceline::runtime {

extern const KernelForm avx2_kernels;

namespace {

struct Avx2 {
  using Floats = __m256;
  static constexpr std::size_t lanes = 8;

  static Floats broadcast(float value) { return _mm256_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats canonical(Floats value) {
    const __m256 quiet_nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(value, quiet_nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  }
  static bool finite(Floats value) {
    const __m256i infinity = _mm256_set1_epi32(0x7f800000);
    const __m256i exponent = _mm256_and_si256(_mm256_castps_si256(value), infinity);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(exponent, infinity)) == 0;
  }

  // Parts of a vector go through memory of a vector's size.
  template <class Whole>
  struct Format : Whole {
    using Whole::load;
    using Whole::store;
    static Floats load(const unsigned char* from, std::size_t count) {
      alignas(32) unsigned char room[lanes * Whole::bytes] = {};
      __builtin_memcpy(room, from, count * Whole::bytes);
      return Whole::load(room);
    }
    static void store(unsigned char* to, Floats value, std::size_t count) {
      alignas(32) unsigned char room[lanes * Whole::bytes];
      Whole::store(room, value);
      __builtin_memcpy(to, room, count * Whole::bytes);
    }
  };

  static __m128i load_halves(const unsigned char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static void store_halves(unsigned char* to, __m128i halves) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
  }

  struct WholeFp32 {
    static constexpr std::size_t bytes = 4;
    static Floats load(const unsigned char* from) {
      return _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    static void store(unsigned char* to, Floats value) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_castps_si256(value));
    }
  };
  struct WholeFp16 {
    static constexpr std::size_t bytes = 2;
    static Floats load(const unsigned char* from) { return _mm256_cvtph_ps(load_halves(from)); }
    static void store(unsigned char* to, Floats value) {
      store_halves(to, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }
  };
  struct WholeBf16 {
    static constexpr std::size_t bytes = 2;
    static Floats load(const unsigned char* from) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(from)), 16));
    }
    static void store(unsigned char* to, Floats value) {
      const __m256i bits = _mm256_castps_si256(value);
      const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
      const __m256i rounded = _mm256_srli_epi32(
          _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
      store_halves(to, _mm_packus_epi32(_mm256_castsi256_si128(rounded),
                                        _mm256_extracti128_si256(rounded, 1)));
    }
  };
  using Fp32 = Format<WholeFp32>;
  using Fp16 = Format<WholeFp16>;
  using Bf16 = Format<WholeBf16>;

  struct SquareSums {
    __m256d sums[8] = {};
    void accumulate(std::size_t group, Floats value) {
      add_square(sums[2 * group], _mm256_castps256_ps128(value));
      add_square(sums[2 * group + 1], _mm256_extractf128_ps(value, 1));
    }
    static void add_square(__m256d& sum, __m128 value) {
      const __m256d wide = _mm256_cvtps_pd(value);
      sum = _mm256_add_pd(sum, _mm256_mul_pd(wide, wide));
    }
    void store(double* lanes_of_sum) const {
      for (std::size_t i = 0; i < 8; ++i) _mm256_storeu_pd(lanes_of_sum + 4 * i, sums[i]);
    }
  };
};

}  // namespace

constinit const KernelForm avx2_kernels = kernel_loops::form<Avx2>("avx2-f16c");

}  // namespace paceline::runtime
