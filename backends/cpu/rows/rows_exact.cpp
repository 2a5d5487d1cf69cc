#include "backends/cpu/rows/rows_exact.hpp"

#include "librepdl/ops/exponential_sum.hpp"

namespace repdl::cpu {
namespace {

float greatest_of(const row_reader& row) noexcept {
  float m = -static_cast<float>(num::infinity);
  for (std::int64_t i = 0; i < row.length(); ++i) m = std::max(m, row(i));
  return m;
}

// out[i] = element(i) for every i that is not decided; returns how many are still open.
template <class Element>
std::int64_t settle_open(int count, float* out, std::uint8_t* decided, const Element& element) noexcept {
  std::int64_t open = 0;
  for (int i = 0; i < count; ++i) {
    if (decided[i] != 0) continue;
    const num::certified c = element(i);
    out[i] = c.value;
    decided[i] = c.decided ? 1 : 0;
    open += c.decided ? 0 : 1;
  }
  return open;
}

template <int Limbs>
std::int64_t settle_level(const row_reader& row, float max, element_kind kind, const float* x, int count, float g,
                          std::int64_t n, float* out, std::uint8_t* decided) noexcept {
  const num::exponential_sum<Limbs> s = num::sum_of_row<Limbs>(row, max);
  return settle_open(count, out, decided, [&](int i) {
    switch (kind) {
      case element_kind::weight:
      case element_kind::target_weight:
        return num::exact_scaled_gradient(s, x[i], g, n, kind == element_kind::target_weight);
      case element_kind::log_softmax:
        return num::exact_log_softmax(s, x[i]);
      case element_kind::logsumexp:
        return num::exact_logsumexp(s);
      case element_kind::cross_entropy:
        return num::exact_cross_entropy(s, x[i]);
    }
    __builtin_unreachable();
  });
}

template <int Limbs>
num::certified total_level(const plan::row_plan& p, std::int64_t n) noexcept {
  num::cross_entropy_total<Limbs> total;
  total.start();
  walk<5> rows = across_rows(p, 0);
  for (std::int64_t r = 0; r < p.rows; ++r, rows.advance(1)) {
    const row_place at = place_of(rows);
    const std::int64_t t = p.target[at.target];
    if (t == p.ignore_index) continue;
    const row_reader row{&p, p.in[0].data + at.in[0]};
    total.add_row(num::sum_of_row<Limbs>(row, greatest_of(row)), row(t));
  }
  return total.finish(n);
}

}  // namespace

std::int64_t settle_exactly(const row_reader& row, float max, element_kind kind, const float* x, int count, float g,
                            std::int64_t n, int budget, float* out, std::uint8_t* decided) noexcept {
  std::int64_t open = 0;
  for (int i = 0; i < count; ++i) open += decided[i] == 0 ? 1 : 0;
  if (open == 0) return 0;
  struct all {
    bool decided;
  };
  const auto level = [&]<int Limbs>() {
    open = settle_level<Limbs>(row, max, kind, x, count, g, n, out, decided);
    return all{open == 0};
  };
  num::decide_by_levels(level, budget);
  return open;
}

std::int64_t settle_tracked_exactly(const plan::row_plan& p, const row_place& at, const float* g, const float* y,
                                    int count, int budget, float* out, std::uint8_t* decided) noexcept {
  const bool products = p.op == op_id::softmax_backward;
  num::dot_accumulator dot;
  num::sum_accumulator sum;
  walk<3> w = along_row(p, 0);
  for (std::int64_t j = 0; j < p.length; ++j, w.advance(1)) {
    const float gj = p.in[0].data[at.in[0] + w.offset(0)];
    if (products) {
      dot.add_product(gj, p.in[1].data[at.in[1] + w.offset(1)]);
    } else {
      sum.add(gj);
    }
  }
  return settle_open(count, out, decided, [&](int i) {
    return products ? num::certified{num::exact_softmax_backward(dot, g[i], y[i]), true}
                    : num::decide_log_softmax_backward(g[i], y[i], sum, budget);
  });
}

num::certified total_exactly(const plan::row_plan& p, std::int64_t n, int budget) noexcept {
  return num::decide_by_levels([&]<int Limbs>() { return total_level<Limbs>(p, n); }, budget);
}

}  // namespace repdl::cpu
