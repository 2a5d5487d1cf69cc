// The driver of attention's gradients (librepdl/ops/attention/attention_backward.hpp): threads take blocks of queries, for grad_q, and of keys, for grad_k
// and grad_v. What a block's loop leaves undecided is decided here, a row at a time: in double-doubles, then exactly.
#include "librepdl/ops/attention/attention_backward.hpp"

#include <atomic>
#include <cstring>

#include "backends/cpu/attention/attention.hpp"
#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/walk.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using plan::checked_size;
using std::int64_t;

template <class T>
class rest_of_gradients final : public gradient_rest {
 public:
  rest_of_gradients(const plan::attention_plan& p, const dispatch::launch& launch, num::late_column* columns,
                    tally& counted) noexcept
      : p_(p), launch_(launch), columns_(columns), counted_(counted) {}

  void decide(int64_t batch, bool is_key, int64_t head, int64_t at, const std::uint8_t* undecided) noexcept override {
    look_at(batch, is_key, head, at);
    for (int64_t e = 0; e < row_.results(); ++e) {
      if (undecided[e] != 0) decide_result(e);
    }
  }

 private:
  void look_at(int64_t batch, bool is_key, int64_t head, int64_t at) noexcept {
    const walk<7> in(p_.batch_rank, p_.batch_shape,
                     {&p_.q_at.batch, &p_.k_at.batch, &p_.v_at.batch, &p_.g_at.batch, &p_.y_at.batch, &p_.mask_at.batch,
                      &p_.given_lse_at.batch},
                     batch);
    row_.of = num::operands_of<T>(p_);
    num::attention_operands<T>& of = row_.of;
    of.q += in.offset(0);
    of.k += in.offset(1);
    of.v += in.offset(2);
    of.g += in.offset(3);
    of.y += in.offset(4);
    if (p_.mask != nullptr) {
      const int64_t bytes = p_.is_added ? sizeof(T) : 1;
      of.mask = static_cast<const std::byte*>(p_.mask) + in.offset(5) * bytes;
    }
    of.lse += in.offset(6);
    of.first_pair = batch * p_.heads * p_.queries * p_.keys;
    row_.is_key = is_key;
    row_.head = head;
    row_.at = at;
    row_.find_columns();
    exact_.of_one = -1;
    exact_.has_groups = false;
    for (int64_t n = 0; n < row_.columns(); ++n) columns_[n] = num::column_of(row_.pair(n));
    const walk<3> out(p_.batch_rank, p_.batch_shape, {&p_.grad_q_at.batch, &p_.grad_k_at.batch, &p_.grad_v_at.batch},
                      batch);
    const auto place = [&](void* of_all, const plan::attention_place& to, int i) {
      return static_cast<T*>(of_all) + out.offset(i) + head * to.head + at * to.row;
    };
    first_ = is_key ? place(p_.grad_k, p_.grad_k_at, 1) : place(p_.grad_q, p_.grad_q_at, 0);
    second_ = is_key ? place(p_.grad_v, p_.grad_v_at, 2) : nullptr;
  }
  T& result(int64_t e) const noexcept {
    return row_.has_factor(e) ? first_[e * (row_.is_key ? p_.grad_k_at : p_.grad_q_at).element]
                              : second_[(e - p_.size) * p_.grad_v_at.element];
  }

  void decide_result(int64_t e) noexcept {
    num::special_terms odd;
    for (int64_t n = 0; n < row_.columns(); ++n) odd.add(num::odd_part(row_, columns_[n], n, e));
    if (odd.any()) return put(e, num::odd_result(row_, odd, e), tier::proved);
    if (launch_.first_tier <= tier::double_double) {
      num::wide_sum<double> sum;
      for (int64_t n = 0; n < row_.columns(); ++n) {
        if (!columns_[n].has_weight()) continue;
        const num::wide<double> part = num::wide_part(row_, columns_[n], n, e);
        sum.add(part.value, part.error);
      }
      num::wide<double> r = sum.total(row_.columns());
      num::to_result(r, row_, e);
      const auto c = num::round_number<T>(r);
      if (c.decided) return put(e, c.value, tier::double_double);
    }
    exact_.find_groups();
    const auto c = exact_.decide(e, launch_.last_tier_bits);
    result(e) = c.value;
    counted_.add(tier::exact, c.decided ? 1 : 0);
    counted_.undecided += c.decided ? 0 : 1;
  }
  void put(int64_t e, T value, tier by) noexcept {
    result(e) = value;
    counted_.add(by, 1);
  }

  const plan::attention_plan& p_;
  const dispatch::launch& launch_;
  num::late_column* const columns_;
  tally& counted_;
  num::gradient_row<T> row_{};
  num::row_exact<T> exact_{row_, columns_};
  T *first_ = nullptr, *second_ = nullptr;
};

class gradient_work final : public planned<plan::attention_plan> {
 public:
  gradient_work(const plan::attention_plan& whole, const setting& given) noexcept : planned(whole, given) {
    const int64_t group = p.key_heads == 0 ? 0 : p.heads / p.key_heads, rows = group * p.queries;
    of_queries_ = (rows + attention_rows - 1) / attention_rows;
    of_keys_ = (p.keys + attention_rows - 1) / attention_rows;
    rows_ = rows;
    blocks_ = p.batches * p.key_heads * (of_queries_ + of_keys_);
    const double pairs = static_cast<double>(p.batches) * static_cast<double>(p.heads) *
                         static_cast<double>(p.queries) * static_cast<double>(std::max<int64_t>(p.keys, 1));
    const double each = 6 + 0.21 * static_cast<double>(p.size + p.value_size);  // bench/thread_estimates.cpp
    threads_ = static_cast<int>(
        std::min<int64_t>(worthwhile_threads(s.launch.threads, pairs, each), std::max<int64_t>(blocks_, 1)));
    of_block_ = checked_size(p.type == dtype::f64 ? p.size + p.value_size : s.set.attention->gradients->bytes(p))
                    .rounded_up(64);
    of_columns_ = checked_size::product(std::max(p.keys, rows), sizeof(num::late_column)).rounded_up(64);
  }

  checked_size bytes() const override { return checked_size::product(threads_, of_block_ + of_columns_); }

  void run(void* workspace) override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.type) run_as<T>(static_cast<std::byte*>(workspace));
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  template <class T>
  void run_as(std::byte* workspace) const {
    const auto part = static_cast<int64_t>((of_block_ + of_columns_).value()),
               columns_at = static_cast<int64_t>(of_block_.value());
    const int64_t of_head = of_queries_ + of_keys_;
    std::atomic<int64_t> next{0};
    parallel(threads_, [&](int thread, int) {
      tally counted;
      std::byte* const mine = workspace + thread * part;
      rest_of_gradients<T> rest(p, s.launch, reinterpret_cast<num::late_column*>(mine + columns_at), counted);
      for (int64_t n = next.fetch_add(1); n < blocks_ && !stopped(); n = next.fetch_add(1)) {
        const int64_t head = n / of_head, at = n % of_head;
        const bool is_key = at >= of_queries_;
        const int64_t first = (is_key ? at - of_queries_ : at) * attention_rows;
        const attention_block block{
            head / p.key_heads, head % p.key_heads, first,
            static_cast<int>(std::min<int64_t>(attention_rows, (is_key ? p.keys : rows_) - first))};
        if constexpr (num::is_binary64<T>) {
          leave_all(block, is_key, mine, rest);
        } else {
          s.set.attention->gradients->run(p, block, is_key, s.launch.first_tier, mine, rest, counted);
        }
      }
      s.count.add(counted);
    });
  }

  // Of binary64 there is no first tier: everything in the block is left.
  void leave_all(const attention_block& block, bool is_key, std::byte* marks, gradient_rest& rest) const {
    std::memset(marks, 1, static_cast<std::size_t>(p.size + p.value_size));
    for (int64_t row = block.first; row < block.first + block.count; ++row) {
      const int64_t head = is_key ? block.key_head : block.key_head * (p.heads / p.key_heads) + row / p.queries;
      rest.decide(block.batch, is_key, head, is_key ? row : row % p.queries,
                  reinterpret_cast<const std::uint8_t*>(marks));
    }
  }

  int64_t rows_, of_queries_, of_keys_, blocks_;  // blocks: of queries and of keys that go with one head of k
  int threads_;
  checked_size of_block_, of_columns_;
};

}  // namespace

void prepare_gradients(const plan::attention_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<gradient_work>(p, s);
}

}  // namespace repdl::cpu
