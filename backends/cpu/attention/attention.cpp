// The driver of attention (librepdl/ops/attention/attention.hpp): threads take blocks of queries. What a block's loop leaves undecided is decided
// here, a query at a time: in double-doubles, then exactly.
#include "backends/cpu/attention/attention.hpp"

#include <atomic>
#include <cmath>
#include <cstring>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/walk.hpp"
#include "librepdl/ops/attention/attention_exact.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using plan::checked_size;
using std::int64_t;

template <class T>
class rest_of_queries final : public attention_rest {
  using L = num::lse_of<T>;

 public:
  rest_of_queries(const plan::attention_plan& p, const dispatch::launch& launch, num::late_key* keys,
                  tally& counted) noexcept
      : p_(p), launch_(launch), keys_(keys), counted_(counted) {}

  void decide(int64_t batch, int64_t head, int64_t query, int64_t first, int64_t count,
              const std::uint8_t* undecided) noexcept override {
    if (batch != batch_ || head != head_ || query != place_) look_at(batch, head, query);
    if (count == 0) return decide_logarithm();
    for (int64_t e = first; e < first + count; ++e) {
      if (undecided[e - first] != 0) decide_result(e);
    }
  }

 private:
  void look_at(int64_t batch, int64_t head, int64_t i) noexcept {
    batch_ = batch;
    head_ = head;
    place_ = i;
    const walk<6> at(
        p_.batch_rank, p_.batch_shape,
        {&p_.q_at.batch, &p_.k_at.batch, &p_.v_at.batch, &p_.mask_at.batch, &p_.out_at.batch, &p_.lse_at.batch}, batch);
    const int64_t of_keys = head / (p_.heads / p_.key_heads);
    num::attention_query<T>& q = query_;
    q.q = static_cast<const T*>(p_.q) + at.offset(0) + head * p_.q_at.head + i * p_.q_at.row;
    q.k = static_cast<const T*>(p_.k) + at.offset(1) + of_keys * p_.k_at.head;
    q.v = static_cast<const T*>(p_.v) + at.offset(2) + of_keys * p_.v_at.head;
    q.is_added = p_.mask != nullptr && p_.is_added;
    q.mask = nullptr;
    if (p_.mask != nullptr) {
      const int64_t bytes = p_.is_added ? sizeof(T) : 1;
      q.mask =
          static_cast<const std::byte*>(p_.mask) + (at.offset(3) + head * p_.mask_at.head + i * p_.mask_at.row) * bytes;
    }
    q.q_step = p_.q_at.element;
    q.k_row = p_.k_at.row;
    q.k_step = p_.k_at.element;
    q.v_row = p_.v_at.row;
    q.v_step = p_.v_at.element;
    q.mask_step = p_.mask_at.element;
    q.size = p_.size;
    q.at = i + p_.offset;
    q.first = std::clamp<int64_t>(q.at - p_.before, 0, p_.keys);
    q.last = std::clamp<int64_t>(q.at + p_.after + 1, 0, p_.keys);
    q.scale = p_.scale;
    q.has_slope = p_.slopes != nullptr;
    q.slope = q.has_slope ? static_cast<double>(p_.slopes[head * p_.slope_step]) : 0.0;
    q.draws = num::draws_of(p_);
    q.first_pair = ((batch * p_.heads + head) * p_.queries + i) * p_.keys;
    out_ = static_cast<T*>(p_.out) + at.offset(4) + head * p_.out_at.head + i * p_.out_at.row;
    if (p_.lse != nullptr) lse_ = static_cast<L*>(p_.lse) + at.offset(5) + head * p_.lse_at.head + i * p_.lse_at.row;
    exact_.has_groups = false;

    num::score_kinds kinds;
    has_vanishing_ = false;
    double top = -num::infinity;
    for (int64_t j = q.first; j < q.last; ++j) {
      num::late_key& key = keys_[j - q.first];
      key = {{{-num::infinity, 0.0}, 0.0}, {}, -1};
      if (!q.is_present(j)) continue;
      const num::tracked_sum<double> products = q.products(j);
      const double s = q.near_score(j, products);
      kinds.add(s);
      has_vanishing_ |= s == -num::infinity;
      if (!num::is_finite(s)) continue;
      key.score = q.wide_score(j, products);
      top = std::max(top, key.score.value.hi);
    }
    kind_ = kinds.kind();
    if (kind_ != num::query_kind::finite) return;
    // One less than the greatest score, so that the sum is at least 2.
    reference_ = top - 1;
    weights_ = num::wide<double>{};
    for (int64_t n = 0; n < q.last - q.first; ++n) {
      if (!keys_[n].has_weight()) continue;
      keys_[n].weight = num::weight_of(keys_[n].score, reference_);
      weights_ = num::add_positive(weights_, keys_[n].weight);
    }
  }

  // Where a result of double-doubles is not decided it is known between which neighbours it lies, or not even that.
  void decide_result(int64_t e) noexcept {
    T& out = out_[e * p_.out_at.element];
    if (kind_ != num::query_kind::finite) return put(out, num::narrow<T>(num::results_of(kind_).out), tier::proved);
    num::special_terms special;
    for (int64_t j = query_.first; j < query_.last; ++j) {
      const auto v = static_cast<double>(query_.value(j, e));
      if (num::is_finite(v) || !query_.is_kept(j)) continue;
      if (keys_[j - query_.first].has_weight()) {
        special.add(v);
      } else if (has_vanishing_ && query_.is_present(j)) {
        special.nan = true;  // times the weight 0
      }
    }
    if (special.any()) return put(out, special.template value<T>(), tier::proved);
    num::neighbours<T> ends{T{}, T{}, false};
    if (launch_.first_tier <= tier::double_double) {
      num::wide_sum<double> sum;
      for (int64_t n = 0; n < query_.last - query_.first; ++n) {
        if (!keys_[n].has_weight() || !query_.is_kept(query_.first + n)) continue;
        const auto v = static_cast<double>(query_.value(query_.first + n, e));
        const num::wide<double> term = num::weighted<T>(keys_[n].weight, v);
        sum.add(term.value, term.error);
      }
      num::wide<double> result = sum.total(query_.last - query_.first);
      num::to_result<T>(result, weights_, query_.draws);
      const auto c = num::round_number<T>(result);
      if (c.decided) return put(out, c.value, tier::double_double);
      if (result.error < 0x1p900) {
        const num::dd_ends both = num::interval_ends(result.value, result.error * (1 + 0x1p-10), 0);
        ends = num::neighbours<T>::of(num::round_dd<T>(both.lo), num::round_dd<T>(both.hi));
      }
    }
    const auto c = exact_.decide(e, ends, launch_.last_tier_bits);
    out = c.value;
    count(c.decided);
  }
  void decide_logarithm() noexcept {
    if (kind_ != num::query_kind::finite) {
      return put(*lse_, num::narrow<L>(num::results_of(kind_).lse), tier::proved);
    }
    if (launch_.first_tier <= tier::double_double) {
      num::wide<double> log = weights_;
      num::to_logarithm(log);
      num::add_value(log, reference_);
      const auto c = num::round_number<L>(log);
      if (c.decided) return put(*lse_, c.value, tier::double_double);
    }
    const auto c = exact_.logarithm(launch_.last_tier_bits);
    *lse_ = c.value;
    count(c.decided);
  }

  template <class U>
  void put(U& to, U value, tier by) noexcept {
    to = value;
    counted_.add(by, 1);
  }
  void count(bool decided) noexcept {
    counted_.add(tier::exact, decided ? 1 : 0);
    counted_.undecided += decided ? 0 : 1;
  }

  const plan::attention_plan& p_;
  const dispatch::launch& launch_;
  num::late_key* const keys_;
  tally& counted_;
  int64_t batch_ = -1, head_ = -1, place_ = -1;
  num::attention_query<T> query_{};
  num::query_exact<T> exact_{query_, keys_};
  T* out_ = nullptr;
  L* lse_ = nullptr;
  num::query_kind kind_{};
  bool has_vanishing_ = false;
  double reference_ = 0;
  num::wide<double> weights_{};
};

class attention_work final : public planned<plan::attention_plan> {
 public:
  attention_work(const plan::attention_plan& whole, const setting& given) noexcept : planned(whole, given) {
    rows_ = p.key_heads == 0 ? 0 : p.heads / p.key_heads * p.queries;
    blocks_ = p.batches * p.key_heads * ((rows_ + attention_rows - 1) / attention_rows);
    const double pairs = static_cast<double>(p.batches) * static_cast<double>(p.heads) *
                         static_cast<double>(p.queries) * static_cast<double>(std::max<int64_t>(p.keys, 1));
    const double each = 2 + 0.06 * static_cast<double>(p.size + p.value_size);  // bench/thread_estimates.cpp
    threads_ = static_cast<int>(
        std::min<int64_t>(worthwhile_threads(s.launch.threads, pairs, each), std::max<int64_t>(blocks_, 1)));
    of_block_ = checked_size(p.type == dtype::f64 ? p.value_size : s.set.attention->bytes(p)).rounded_up(64);
    of_keys_ = checked_size::product(p.keys, sizeof(num::late_key)).rounded_up(64);
  }

  checked_size bytes() const override { return checked_size::product(threads_, of_block_ + of_keys_); }

  void run(void* workspace) override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.type) run_as<T>(static_cast<std::byte*>(workspace));
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  template <class T>
  void run_as(std::byte* workspace) const {
    const auto part = static_cast<int64_t>((of_block_ + of_keys_).value()),
               keys_at = static_cast<int64_t>(of_block_.value());
    const int64_t of_head = (rows_ + attention_rows - 1) / attention_rows;
    std::atomic<int64_t> next{0};
    parallel(threads_, [&](int thread, int) {
      tally counted;
      std::byte* const mine = workspace + thread * part;
      rest_of_queries<T> rest(p, s.launch, reinterpret_cast<num::late_key*>(mine + keys_at), counted);
      for (int64_t n = next.fetch_add(1); n < blocks_ && !stopped(); n = next.fetch_add(1)) {
        const int64_t head = n / of_head, first = n % of_head * attention_rows;
        const attention_block block{head / p.key_heads, head % p.key_heads, first,
                                    static_cast<int>(std::min<int64_t>(attention_rows, rows_ - first))};
        if constexpr (num::is_binary64<T>) {
          leave_all(block, mine, rest);
        } else {
          s.set.attention->run(p, block, s.launch.first_tier, mine, rest, counted);
        }
      }
      s.count.add(counted);
    });
  }

  // Of binary64 there is no first tier: everything in the block is left.
  void leave_all(const attention_block& block, std::byte* marks, attention_rest& rest) const {
    std::memset(marks, 1, static_cast<std::size_t>(p.value_size));
    for (int64_t row = block.first; row < block.first + block.count; ++row) {
      const int64_t head = block.key_head * (p.heads / p.key_heads) + row / p.queries, i = row % p.queries;
      if (p.value_size != 0)
        rest.decide(block.batch, head, i, 0, p.value_size, reinterpret_cast<const std::uint8_t*>(marks));
      if (p.lse != nullptr) rest.decide(block.batch, head, i, 0, 0, nullptr);
    }
  }

  int64_t rows_, blocks_;
  int threads_;
  checked_size of_block_, of_keys_;
};

}  // namespace

void prepare(const plan::attention_plan& p, const setting& s, dispatch::task& t) noexcept {
  if (p.op == ops::op_id::attention_backward) return prepare_gradients(p, s, t);
  t.emplace<attention_work>(p, s);
}

}  // namespace repdl::cpu
