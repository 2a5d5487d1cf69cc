// matmul: strided matrices on both sides. Compiled once per instruction set.
#include <type_traits>

#include "backends/cpu/product/gemm_loops.hpp"
#include "backends/cpu/product/matmul.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

template <class T, bool Scaled>
struct matmul_problem {
  using format = T;
  using number = float;
  using loader = loader_of<T>;
  static constexpr bool is_scaled = Scaled;
  static constexpr bool skips_terms = false;
  loader a, b;
  bool has_bias;
  double alpha, beta;

  matmul_problem(const void* operands, std::int64_t batch) noexcept {
    const auto& p = *static_cast<const strided_product*>(operands);
    std::int64_t at_a = 0, at_b = 0, at_bias = 0, at_out = 0;
    for (int d = p.batch_rank - 1; d >= 0; --d) {
      const auto axis = static_cast<std::size_t>(d);
      const std::int64_t i = batch % p.batch_shape[axis];
      batch /= p.batch_shape[axis];
      at_a += i * p.a.batch[axis];
      at_b += i * p.b.batch[axis];
      at_bias += i * p.bias.batch[axis];
      at_out += i * p.out.batch[axis];
    }
    a = {static_cast<const T*>(p.a.data) + at_a, p.a.outer, p.a.inner};
    b = {static_cast<const T*>(p.b.data) + at_b, p.b.outer, p.b.inner};
    alpha = p.alpha;
    beta = p.beta;
    has_bias = p.bias.data != nullptr;
    bias_ = has_bias ? static_cast<const T*>(p.bias.data) + at_bias : nullptr;
    bias_row_ = p.bias.outer;
    bias_column_ = p.bias.inner;
    out_ = static_cast<T*>(p.out.data) + at_out;
    out_row_ = p.out.outer;
    out_column_ = p.out.inner;
  }

  void load_bias(std::int64_t i, std::int64_t j, int count, float* to) const noexcept {
    const T* const from = bias_ + i * bias_row_ + j * bias_column_;
    for (int c = 0; c < count; ++c) to[c] = num::widen_to_float(from[c * bias_column_]);
  }
  template <int Width>
  void store(std::int64_t i, std::int64_t j, int count, const T* from) const noexcept {
    T* const to = out_ + i * out_row_ + j * out_column_;
    if (out_column_ == 1 && count == Width) {
      __builtin_memcpy(to, from, Width * sizeof(T));
    } else {
      for (int c = 0; c < count; ++c) to[c * out_column_] = from[c];
    }
  }

 private:
  const T* bias_;
  std::int64_t bias_row_, bias_column_;
  T* out_;
  std::int64_t out_row_, out_column_;
};

}  // namespace

extern const product_kernels product_table = {
    gemm<exact_engine, matmul_problem<float, false>>::table(),
    gemm<chain_engine, matmul_problem<float, false>>::table(), gemm<exact_engine, matmul_problem<float, true>>::table(),
    gemm<exact_engine, matmul_problem<f16, true>>::table(), gemm<exact_engine, matmul_problem<bf16, true>>::table()};

}  // namespace repdl::cpu::REPDL_ISA
