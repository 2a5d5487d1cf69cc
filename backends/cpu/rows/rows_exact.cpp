#include "backends/cpu/rows/rows_exact.hpp"

#include "librepdl/ops/exponential_sum.hpp"

namespace repdl::cpu {
namespace {

float greatest_of(const row_reader& row) noexcept {
  float m = -static_cast<float>(num::infinity);
  for (std::int64_t i = 0; i < row.length(); ++i) m = std::max(m, row(i));
  return m;
}

template <int Limbs>
std::int64_t settle_level(const row_reader& row, float max, element_kind kind, const float* x, int count, float g,
                          std::int64_t n, float* out, std::uint8_t* decided) noexcept {
  const num::exponential_sum<Limbs> s = num::sum_of_row<Limbs>(row, max);
  std::int64_t open = 0;
  for (int i = 0; i < count; ++i) {
    if (decided[i] != 0) continue;
    num::certified c{};
    switch (kind) {
      case element_kind::weight:
      case element_kind::target_weight:
        c = num::exact_scaled_gradient(s, x[i], g, n, kind == element_kind::target_weight);
        break;
      case element_kind::log_softmax:
        c = num::exact_log_softmax(s, x[i]);
        break;
      case element_kind::logsumexp:
        c = num::exact_logsumexp(s);
        break;
      case element_kind::cross_entropy:
        c = num::exact_cross_entropy(s, x[i]);
        break;
    }
    out[i] = c.value;
    decided[i] = c.decided ? 1 : 0;
    open += c.decided ? 0 : 1;
  }
  return open;
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
  if (open != 0 && budget >= 256) open = settle_level<4>(row, max, kind, x, count, g, n, out, decided);
  if (open != 0 && budget >= 512) open = settle_level<8>(row, max, kind, x, count, g, n, out, decided);
  if (open != 0 && budget >= 1024) open = settle_level<16>(row, max, kind, x, count, g, n, out, decided);
  if (open != 0 && budget >= 2048) open = settle_level<32>(row, max, kind, x, count, g, n, out, decided);
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
  std::int64_t open = 0;
  for (int i = 0; i < count; ++i) {
    if (decided[i] != 0) continue;
    const num::certified c = products ? num::certified{num::exact_softmax_backward(dot, g[i], y[i]), true}
                                      : num::decide_log_softmax_backward(g[i], y[i], sum, budget);
    out[i] = c.value;
    decided[i] = c.decided ? 1 : 0;
    open += c.decided ? 0 : 1;
  }
  return open;
}

num::certified total_exactly(const plan::row_plan& p, std::int64_t n, int budget) noexcept {
  num::certified c{0.0f, false};
  if (budget >= 256) c = total_level<4>(p, n);
  if (!c.decided && budget >= 512) c = total_level<8>(p, n);
  if (!c.decided && budget >= 1024) c = total_level<16>(p, n);
  if (!c.decided && budget >= 2048) c = total_level<32>(p, n);
  return c;
}

}  // namespace repdl::cpu
