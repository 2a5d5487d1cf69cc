// Rows, one at a time or in tiles, by the rules of librepdl/ops/rows. Compiled once per instruction set. Contracts:
// backends/cpu/rows/rows.hpp.
#include <type_traits>

#include "backends/cpu/rows/rows.hpp"
#include "backends/cpu/rows/rows_elements.hpp"
#include "backends/cpu/rows/rows_places.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using ops::op_id;
using wide_number = num::wide<double>;

// One worker's part of a sum of losses.
template <class Rule>
struct loss_sums {
  num::tracked_sum<f64v> lanes;  // of tiles
  f64v lanes_slack = {};
  num::tracked_sum<double> sum;
  double slack = 0;
  std::int64_t rows = 0;
  typename Rule::template late_total<wide_number> wide;
  bool nan = false;
  bool infinite = false;
};
template <class Rule>
loss_sums<Rule>& loss_of(row_worker& w) {
  static_assert(sizeof(loss_sums<Rule>) <= sizeof(row_worker::loss));
  return *reinterpret_cast<loss_sums<Rule>*>(w.loss);
}

template <op_id Op>
class row_walker {
  using rule = num::row_rule<Op>;
  using late_sums = typename rule::template late<wide_number>;
  static constexpr bool finds_greatest = rule::look == num::row_look::greatest;
  static constexpr int elements = num::elements_of<rule>;
  static constexpr int first_result = rule::per_element ? 1 : 0;
  static constexpr bool is_loss = num::is_loss<rule>;

 public:
  row_walker(const row_job& job, row_worker& w) noexcept : job_(job), p_(*job.plan), w_(w) {
    // Chunks are joined with more bits.
    const std::int64_t n = p_.length;
    const std::int64_t chunk = n < row_chunk ? n : row_chunk;
    const std::int64_t row_height = chunk / (4 * L) + 8 + L;
    const std::int64_t tile_height = job.columns != 0 ? n / column_chains<rule> + 6 : 0;
    const std::int64_t height = (row_height > tile_height ? row_height : tile_height) + 2;
    num::row_bounds bounds = rule::bounds(n, height, tile_height + n / L + 4 * L + n / row_chunk + job.team + 8);
    if (job.forced) bounds = num::row_bounds::nothing();
    call_ = call_of<rule>(job, bounds);
    sums_up_ = is_loss && p_.reduction != repdl::reduction::none;
  }

  // What is known of a row, and of a part of it.
  struct row {
    row_place at;
    num::row_operands own;
    float top;
    typename rule::total sums;
    late_sums late;
    num::certified exception;
    num::certified result[rule::results + 1];
  };
  struct part {
    float top;
    typename rule::total sums;
    late_sums late;
    int undecided;  // chunks with undecided outputs: the worker's
    std::int64_t end;
  };
  static_assert(sizeof(row) <= sizeof(row_worker::row) && sizeof(part) <= sizeof(row_worker::part));

  void rows(std::int64_t begin, std::int64_t end) noexcept {
    const bool tiles = job_.columns != 0 && !job_.forced && !job_.wide_loss;
    row_places<rule> at(p_, begin);
    for (std::int64_t r = begin; r < end;) {
      if (tiles) {
        const std::int64_t m = end - r < job_.columns ? end - r : job_.columns;
        for (std::int64_t c = 0; c < m; ++c, at.advance()) w_.place[c] = at.here();
        tile(m);
        r += m;
      } else {
        one_row(at.here());
        at.advance();
        ++r;
      }
    }
    if (job_.streams) drain();
  }
  void one_row(const row_place& at) noexcept {
    row r;
    part mine;
    for (row_phase phase = begin(r, at); phase != row_phase::done;) {
      piece(r, mine, phase, 0, p_.length);
      phase = join(r, phase, 1, [&](int) -> part& { return mine; });
    }
  }

  row_phase begin(row& r, const row_place& at) noexcept {
    r.at = at;
    r.own = operands_of<rule>(p_, at);
    r.top = cpu::REPDL_ISA::top_of<rule>(p_, at);
    return finds_greatest ? row_phase::look : classified(r);
  }
  row_phase begin(row& r, std::int64_t index) noexcept { return begin(r, row_places<rule>(p_, index).here()); }

  void piece(const row& r, part& mine, row_phase phase, std::int64_t begin, std::int64_t end) noexcept {
    switch (phase) {
      case row_phase::look:
        if (is_direct(0)) {
          mine.top = greatest_of(floats_of(0) + r.at.x[0] + begin, end - begin);
          break;
        }
        mine.top = -inf;
        chunks<rule::summed>(r.at, begin, end, false, [&](const slice& s, std::int64_t, float*) {
          mine.top = greater_or_nan(greatest_of(s.x[0], s.n), mine.top);
        });
        break;
      case row_phase::sums:
        mine.sums = {};
        chunks<rule::summed>(r.at, begin, end, false, [&](const slice& s, std::int64_t, float*) {
          if constexpr (rule::keeps_term) {
            if (s.keep != nullptr) return mine.sums.join(sums_of<rule, true>(s, top_of(r)));
          }
          mine.sums.join(sums_of<rule, false>(s, top_of(r)));
        });
        break;
      case row_phase::outputs:
        if constexpr (rule::per_element) outputs(r, mine, begin, end);
        break;
      case row_phase::late:
        mine.late = {};
        num::start_sums(mine.late, top_of(r), call_);
        chunks<rule::summed>(r.at, begin, end, false, [&](const slice& s, std::int64_t, float*) {
          wide_sums_of<rule>(s, top_of(r), call_, mine.late);
        });
        break;
      case row_phase::settle:
        if constexpr (rule::per_element) settle_outputs(r, mine);
        break;
      case row_phase::done:
        break;
    }
  }

  // part_of(i) for i < team.
  template <class Parts>
  row_phase join(row& r, row_phase phase, int team, const Parts& part_of) noexcept {
    switch (phase) {
      case row_phase::look: {
        r.top = -inf;
        for (int i = 0; i < team; ++i) r.top = greater_or_nan(part_of(i).top, r.top);
        return classified(r);
      }
      case row_phase::sums:
        r.sums = {};
        for (int i = 0; i < team; ++i) r.sums.join(part_of(i).sums);
        return summed_up(r);
      case row_phase::outputs: {
        int undecided = undecided_results(r);
        for (int i = 0; i < team; ++i) undecided += part_of(i).undecided;
        if constexpr (rule::has_exception) {
          if (r.own.target >= 0) {
            r.exception = num::round_ends(p_.out_type[0],
                                          rule::exception(call_, r.own, top_of(r), r.sums.template of_row<double>()));
            if (!r.exception.decided) ++undecided;
          }
        }
        if (undecided == 0) return finish(r);
        return job_.skips_wide ? row_phase::settle : row_phase::late;
      }
      case row_phase::late:
        r.late = {};
        num::start_sums(r.late, top_of(r), call_);
        for (int i = 0; i < team; ++i) r.late.merge(part_of(i).late);
        if constexpr (is_loss) {
          if (job_.wide_loss) {
            loss_of<rule>(w_).wide.add_row(r.late, r.own);
            return row_phase::done;
          }
        }
        if constexpr (rule::per_element) return row_phase::settle;
        return finish(r);
      case row_phase::settle:
        return finish(r);
      case row_phase::done:
        break;
    }
    return row_phase::done;
  }

 private:
  static double top_of(const row& r) { return static_cast<double>(r.top); }

  row_phase classified(const row& r) noexcept {
    const num::row_class c = rule::classify(call_, r.own, r.top);
    if (c.fills) return fill(r, c.value);
    if constexpr (!rule::has_sums) return row_phase::outputs;
    return job_.wide_loss ? row_phase::late : row_phase::sums;
  }

  // The chunks of [begin, end) of a row, of the first `Count` operands: f(slice, first, out). Outputs are written back.
  template <int Count, class F>
  void chunks(const row_place& at, std::int64_t begin, std::int64_t end, bool writes, const F& f) noexcept {
    bool direct[Count];
    for (int k = 0; k < Count; ++k) direct[k] = is_direct(k);
    const bool direct_out = p_.out_type[0] == dtype::f32 && contiguous(p_, p_.out_stride[0].reduced);
    // The next row's elements, where rows are short and lie one after the other.
    const bool ahead = direct[0] && p_.length <= row_chunk && p_.kept_rank != 0;
    const bool keeps = rule::keeps_term && job_.team == 1 && p_.length <= kept_length;
    for (std::int64_t i = begin; i < end; i += row_chunk) {
      slice s{};
      s.n = end - i < row_chunk ? end - i : row_chunk;
      for (int k = 0; k < Count; ++k) {
        s.x[k] = w_.x[k];
        if (operand<rule>(p_, k) == nullptr) continue;
        if (direct[k]) {
          s.x[k] = floats_of(k) + at.x[k] + i;
        } else {
          gather_row(p_, stride_of<rule>(p_, k).reduced, type_of<rule>(p_, k), operand<rule>(p_, k), at.x[k], i, s.n,
                     w_.x[k]);
        }
      }
      s.ahead = reinterpret_cast<std::uintptr_t>(s.x[0]);
      if (ahead)
        s.ahead += sizeof(float) *
                   static_cast<std::uintptr_t>(stride_of<rule>(p_, 0).kept[static_cast<std::size_t>(p_.kept_rank - 1)]);
      if (keeps) s.keep = w_.keep + i;
      f(s, i, direct_out ? static_cast<float*>(p_.out[0]) + at.out[0] + i : w_.out);
      if (!writes || direct_out) continue;
      scatter_row(p_, p_.out_stride[0].reduced, p_.out_type[0], p_.out[0], at.out[0], i, s.n, w_.out);
    }
  }
  const float* floats_of(int k) const noexcept { return static_cast<const float*>(operand<rule>(p_, k)); }
  bool is_direct(int k) const noexcept {
    return type_of<rule>(p_, k) == dtype::f32 && contiguous(p_, stride_of<rule>(p_, k).reduced);
  }

  template <class T>
  element_of<rule, T> element(const row& r) const noexcept {
    const f64v top = V::all(top_of(r));
    const num::row_given<f64v> own{V::all(static_cast<double>(r.own.g)), V::all(static_cast<double>(r.own.weight))};
    return {rule::template prepare<f64v>(call_, own, top, r.sums.template of_row<f64v>()), top};
  }
  void outputs(const row& r, part& mine, std::int64_t begin, std::int64_t end) noexcept {
    num::with_format(p_.out_type[0], [&]<class T>() { outputs(r, element<T>(r), mine, begin, end); });
  }
  template <class T>
  void outputs(const row& r, element_of<rule, T> e, part& mine, std::int64_t begin, std::int64_t end) noexcept {
    mine.undecided = 0;
    mine.end = end;
    chunks<elements>(r.at, begin, end, true, [&](const slice& s, std::int64_t first, float* out) {
      if constexpr (has_limits<rule>) {
        // A factor and a number that is added, where there are any.
        e.limits = rule::limits_of(e.numbers, elements < 3 ? 0.0 : magnitude_in(s, 1),
                                   elements < 3 ? 0.0 : magnitude_in(s, 2));
      }
      constexpr to streamed = std::is_same_v<T, float> ? to::stream : to::memory;
      bool undecided = job_.streams ? write_elements<rule, streamed, false>(e, s, out)
                                    : write_elements<rule, to::memory, false>(e, s, out);
      if constexpr (has_second<rule>) {
        if (undecided) undecided = write_elements<rule, to::memory, true>(e, s, out);
      }
      w_.count.elements[1] += s.n;
      if (rule::has_exception && r.own.target >= first && r.own.target < first + s.n) --w_.count.elements[1];
      if (undecided && mine.undecided < undecided_chunks) w_.chunk[mine.undecided++] = first;
    });
  }
  // The greatest magnitude of operand k, which often is the same for all rows.
  double magnitude_in(const slice& s, int k) noexcept {
    known_greatest& known = greatest_[k - 1];
    const bool is_same = known.x == s.x[k] && known.n == s.n && (operand<rule>(p_, k) == nullptr || is_direct(k));
    if (!is_same) known = {s.x[k], s.n, static_cast<double>(greatest_magnitude(s.x[k], s.n))};
    return known.value;
  }
  // Again, with marks.
  void settle_outputs(const row& r, const part& mine) noexcept {
    num::with_format(p_.out_type[0], [&]<class T>() { settle_outputs(r, element<T>(r), mine); });
  }
  template <class T>
  void settle_outputs(const row& r, const element_of<rule, T>& e, const part& mine) noexcept {
    if (job_.streams) drain();
    for (int k = 0; k < mine.undecided; ++k) {
      const std::int64_t first = w_.chunk[k];
      // What did not fit into the list comes after its last entry.
      const bool last = k + 1 == undecided_chunks || mine.end - first < row_chunk;
      settle_outputs(r, e, first, last ? mine.end : first + row_chunk);
    }
  }
  template <class T>
  void settle_outputs(const row& r, const element_of<rule, T>& e, std::int64_t begin, std::int64_t end) noexcept {
    chunks<elements>(r.at, begin, end, true, [&](const slice& s, std::int64_t first, float* out) {
      if (!write_elements<rule, to::memory_and_marks, has_second<rule>>(e, s, out, w_.undecided)) return;
      int decided_by = 1;
      if constexpr (has_precise<rule>) {
        if (!job_.skips_wide) {
          std::int64_t marks = 0;
          for (std::int64_t i = 0; i < s.n; ++i) marks += w_.undecided[i] == 0 ? 0 : 1;
          w_.count.elements[1] -= marks;
          w_.count.elements[2] += marks;
          decided_by = 2;
          using precise = typename rule::precise;
          const element_of<precise, T> wide{precise::template prepare<f64v>(call_, r.own, r.late), e.top};
          if (!write_elements<precise, to::memory_and_marks, false>(wide, s, out, w_.undecided)) return;
        }
      }
      std::int64_t left = 0;
      for (std::int64_t i = 0; i < s.n; ++i) {
        if (w_.undecided[i] == 0 || (rule::has_exception && first + i == r.own.target)) continue;
        --w_.count.elements[decided_by];
        float* const x = w_.left[left];
        for (int k = 0; k < elements; ++k) x[k] = s.x[k][i];
        const num::certified c = settle_wide(r, x, 0);
        out[i] = c.value;
        if (!c.decided) w_.index[left++] = i;
      }
      if (left == 0) return;
      settle_exactly(r, w_.left, left, 0, w_.value);
      for (std::int64_t i = 0; i < left; ++i) out[w_.index[i]] = w_.value[i];
    });
  }

  // The number of output `what`, of which the element at the target is one.
  static int number_of(int what) noexcept { return rule::has_exception ? 0 : what; }
  // Output `what`; of an element, that of x.
  num::certified settle_wide(const row& r, const float* x, int what) noexcept {
    if (job_.skips_wide) return {0.0f, false};
    const num::certified c =
        rule::template settle<wide_number>(p_.out_type[number_of(what)], call_, r.own, r.late, x, what);
    if (c.decided) ++w_.count.elements[2];
    return c;
  }
  void settle_exactly(const row& r, const float (*x)[num::most_elements], std::int64_t count, int what,
                      float* value) noexcept {
    const std::int64_t undecided = job_.exact(job_, r.at, r.top, x, count, what, value);
    w_.count.elements[3] += count - undecided;
    w_.count.undecided += undecided;
  }
  float settle(const row& r, int what) noexcept {
    const float x[1][num::most_elements] = {{r.own.at_target}};
    const num::certified c = settle_wide(r, x[0], what);
    float value = c.value;
    if (!c.decided) settle_exactly(r, x, 1, what, &value);
    return value;
  }
  void write(std::int64_t at, const num::certified& c, const row& r, int what) noexcept {
    if (c.decided) ++w_.count.elements[job_.forced ? 0 : 1];
    set(number_of(what), at, c.decided ? c.value : settle(r, what));
  }
  void set(int output, std::int64_t at, float x) noexcept { set_number(p_.out[output], p_.out_type[output], at, x); }

  row_phase summed_up(row& r) noexcept {
    if (rule::per_element && !wants_results()) return row_phase::outputs;
    const num::row_given<double> own{static_cast<double>(r.own.g), static_cast<double>(r.own.weight)};
    const auto numbers = rule::template prepare<double>(call_, own, top_of(r), r.sums.template of_row<double>());
    if constexpr (is_loss) {
      if (sums_up_) {
        add_loss(loss_of<rule>(w_), numbers, r.own.at_target);
        return row_phase::done;
      }
    }
    if constexpr (rule::results != 0) {
      for (int k = 0; k < rule::results; ++k) {
        const auto e =
            rule::template result<double>(call_, numbers, static_cast<double>(rule::counterpart(r.own, k)), k);
        r.result[k] = num::round_ends(p_.out_type[first_result + k], e);
      }
    }
    if (rule::per_element) return row_phase::outputs;
    if (undecided_results(r) == 0 || job_.skips_wide) return finish(r);
    return row_phase::late;
  }
  // The results that are wanted.
  bool wants(int k) const noexcept { return p_.out[first_result + k] != nullptr; }
  bool wants_results() const noexcept {
    for (int k = 0; k < rule::results; ++k) {
      if (wants(k)) return true;
    }
    return false;
  }
  int undecided_results(const row& r) const noexcept {
    int undecided = 0;
    for (int k = 0; k < rule::results; ++k) undecided += wants(k) && !r.result[k].decided ? 1 : 0;
    return undecided;
  }

  // The last of a row: the element at its target, and its results.
  row_phase finish(const row& r) noexcept {
    if (rule::has_exception && r.own.target >= 0) {
      const std::int64_t at = offset_in_row(p_, p_.out_stride[0].reduced, r.own.target);
      write(r.at.out[0] + at, r.exception, r, 1);
    }
    for (int k = 0; k < rule::results; ++k) {
      const int what = first_result + k;
      if (wants(k)) write(r.at.out[what], r.result[k], r, what);
    }
    return row_phase::done;
  }

  row_phase fill(const row& r, float value) noexcept {
    if constexpr (is_loss) {
      if (sums_up_) {
        if (value != 0) (value == value ? loss_of<rule>(w_).infinite : loss_of<rule>(w_).nan) = true;
        return row_phase::done;
      }
    }
    if constexpr (rule::per_element) {
      walk<1> along = along_row(p_, p_.out_stride[0].reduced);
      for (std::int64_t i = 0; i < p_.length; ++i, along.advance(1)) set(0, r.at.out[0] + along.offset(0), value);
      w_.count.elements[0] += p_.length;
    }
    for (int k = 0; k < rule::results; ++k) {
      if (!wants(k)) continue;
      set(first_result + k, r.at.out[first_result + k], value);
      ++w_.count.elements[0];
    }
    return row_phase::done;
  }

  template <class Sums, class Numbers>
  static void add_loss(Sums& to, const Numbers& numbers, float at_target) noexcept {
    const num::loss_part<double> of_row = rule::part(numbers, static_cast<double>(at_target));
    to.sum.add(of_row.gap);
    to.sum.add(of_row.log);
    to.slack += of_row.slack;
    ++to.rows;
  }

  // Rows side by side. What is special in a row, or undecided, is done by going through the row alone.
  struct tile_rows {
    num::row_operands own[tile_columns];
    float top[tile_columns];
    double top_or_0[tile_columns];
    double g[tile_columns], weight[tile_columns];
    double counterpart[rule::results + 1][tile_columns];
    bool again[tile_columns];
    float exception[tile_columns];
    float result[rule::results + 1][tile_columns];
    typename rule::template sums<f64v> sums[tile_columns / L];
  };
  // Nothing is set beforehand: short tiles use little of it.
  union tile_memory {
    tile_memory() {}
    ~tile_memory() {}
    tile_rows rows;
  };
  void tile(std::int64_t rows) noexcept {
    const std::int64_t columns = (rows + column_step - 1) / column_step * column_step;
    slice s = {{}, w_.keep, p_.length, 0};
    tile_memory memory;
    tile_rows& t = memory.rows;
    std::int64_t begins[tile_columns];
    for (int k = 0; k < elements; ++k) {
      s.x[k] = w_.x[k];
      if (operand<rule>(p_, k) == nullptr) continue;
      for (std::int64_t c = 0; c < rows; ++c) begins[c] = w_.place[c].x[k];
      gather_tile(p_, stride_of<rule>(p_, k).reduced, type_of<rule>(p_, k), operand<rule>(p_, k), begins, rows, columns,
                  w_.x[k]);
    }
    if constexpr (finds_greatest) greatest_of_columns(s.x[0], p_.length, columns, t.top);
    t.top_or_0[0] = 0;  // g++ does not see that there is a column
    for (std::int64_t c = 0; c < columns; ++c) {
      t.own[c] = c < rows ? operands_of<rule>(p_, w_.place[c]) : num::row_operands{};
      if constexpr (!finds_greatest) t.top[c] = c < rows ? cpu::REPDL_ISA::top_of<rule>(p_, w_.place[c]) : 0.0f;
      t.again[c] = c >= rows || rule::classify(call_, t.own[c], t.top[c]).fills;
      t.top_or_0[c] = t.again[c] ? 0.0 : static_cast<double>(t.top[c]);
      t.g[c] = static_cast<double>(t.own[c].g);
      t.weight[c] = static_cast<double>(t.own[c].weight);
      for (int k = 0; k < rule::results; ++k) t.counterpart[k][c] = static_cast<double>(rule::counterpart(t.own[c], k));
    }
    if constexpr (rule::has_sums) sums_of_columns<rule>(s, columns, t.top_or_0, t.sums);
    for (std::int64_t c = 0; c < columns; c += L) group(t, s, c, columns);
    if constexpr (rule::per_element) {
      for (std::int64_t c = 0; c < rows; ++c) begins[c] = w_.place[c].out[0];
      scatter_tile(p_, p_.out_stride[0].reduced, p_.out_type[0], p_.out[0], begins, rows, columns, w_.out);
    }
    std::int64_t decided = 0;
    for (std::int64_t c = 0; c < rows; ++c) {
      const row_place& at = w_.place[c];
      if (t.again[c]) {
        one_row(at);
        continue;
      }
      ++decided;
      if (rule::has_exception && t.own[c].target >= 0)
        set(0, at.out[0] + offset_in_row(p_, p_.out_stride[0].reduced, t.own[c].target), t.exception[c]);
      for (int k = 0; k < rule::results && !sums_up_; ++k) {
        if (wants(k)) set(first_result + k, at.out[first_result + k], t.result[k][c]);
      }
    }
    if (sums_up_) return;
    std::int64_t outputs = rule::per_element ? p_.length : 0;
    for (int k = 0; k < rule::results; ++k) outputs += wants(k) ? 1 : 0;
    w_.count.elements[1] += decided * outputs;
  }
  // The columns [c, c + L).
  [[gnu::noinline, gnu::flatten]] void group(tile_rows& t, const slice& s, std::int64_t c,
                                             std::int64_t columns) noexcept {
    const f64v top = load<f64v>(t.top_or_0 + c);
    const auto& sums = t.sums[c / L];
    const auto numbers =
        rule::template prepare<f64v>(call_, {load<f64v>(t.g + c), load<f64v>(t.weight + c)}, top, sums.of_row());
    i32h are_undecided = {};
    if constexpr (rule::per_element) {
      num::with_format(p_.out_type[0], [&]<class T>() {
        are_undecided = write_columns<rule>(element_of<rule, T>{numbers, top}, s, c, columns, w_.out);
      });
    }
    if constexpr (rule::results != 0) {
      for (int k = 0; k < rule::results && !sums_up_; ++k) {
        if (!wants(k)) continue;
        const auto e = rule::template result<f64v>(call_, numbers, load<f64v>(t.counterpart[k] + c), k);
        num::with_format(p_.out_type[first_result + k], [&]<class T>() {
          const auto v = num::verdict_of<T, f64v>(e);
          are_undecided |= v.undecided;
          store(t.result[k] + c, v.value);
        });
      }
    }
    std::int32_t undecided[L];
    store(undecided, are_undecided);
    for (int l = 0; l < L; ++l) t.again[c + l] = t.again[c + l] || undecided[l] != 0;
    if constexpr (rule::has_exception) {
      for (int l = 0; l < L; ++l) {
        if (t.again[c + l] || t.own[c + l].target < 0) continue;
        const num::certified e = num::round_ends(
            p_.out_type[0], rule::exception(call_, t.own[c + l], t.top_or_0[c + l], sums.lane(l).of_row()));
        t.again[c + l] = !e.decided;
        t.exception[c + l] = e.value;
      }
    }
    if constexpr (is_loss) {
      if (!sums_up_) return;
      double live[L];
      for (int l = 0; l < L; ++l) live[l] = t.again[c + l] ? 0.0 : 1.0;
      const auto counts = load<f64v>(live) > 0.0;
      const f64v zero = {};
      const num::loss_part<f64v> of_rows = rule::part(numbers, load<f64v>(t.counterpart[0] + c));
      loss_sums<rule>& to = loss_of<rule>(w_);
      to.lanes.add(num::double_word<f64v>{counts ? of_rows.gap.hi : zero, counts ? of_rows.gap.lo : zero});
      to.lanes.add(counts ? of_rows.log : zero);
      to.lanes_slack += counts ? of_rows.slack : zero;
      to.rows += L;
    }
  }

  const row_job& job_;
  const plan::row_plan& p_;
  row_worker& w_;
  num::row_call call_;
  bool sums_up_;  // a loss over all rows
  struct known_greatest {
    const float* x = nullptr;
    std::int64_t n = 0;
    double value = 0;
  };
  known_greatest greatest_[2];
};

// f.template operator()<Op>() for the call's operation.
template <class F>
[[gnu::always_inline]] inline void with_operation(const row_job& job, const F& f) {
  ops::for_row_operation(job.plan->op, [&]<class Op>() { f.template operator()<Op::id>(); });
}

// The same of a loss.
template <class F>
[[gnu::always_inline]] inline void with_loss(const row_job& job, const F& f) {
  with_operation(job, [&]<op_id Op>() {
    if constexpr (num::is_loss<num::row_rule<Op>>) f.template operator()<Op>();
  });
}

// Of a team: the row is the first worker's, a part each one's.
template <op_id Op>
typename row_walker<Op>::row& row_of(const row_job& job) {
  return *reinterpret_cast<typename row_walker<Op>::row*>(job.worker(0).row);
}
template <op_id Op>
typename row_walker<Op>::part& part_of(row_worker& w) {
  return *reinterpret_cast<typename row_walker<Op>::part*>(w.part);
}

template <op_id Op>
row_loss finish_loss(const row_job& job, int workers) noexcept {
  using rule = num::row_rule<Op>;
  loss_sums<rule> all;
  all.wide.start();
  for (int i = 0; i < workers; ++i) {
    const loss_sums<rule>& o = loss_of<rule>(job.worker(i));
    all.sum.merge(o.sum);
    all.slack += o.slack;
    for (int l = 0; l < L; ++l) {
      all.sum.merge({o.lanes.hi[l], o.lanes.lo[l], o.lanes.error[l]});
      all.slack += o.lanes_slack[l];
    }
    all.rows += o.rows + L + 1;
    all.wide.merge(o.wide);
    all.nan = all.nan || o.nan;
    all.infinite = all.infinite || o.infinite;
  }
  if (all.nan || all.infinite) return {all.nan ? num::float_of(num::canonical_nan_f32) : inf, true, true};
  num::certified c = {0.0f, false};
  const num::row_call call = call_of<rule>(job, {});
  if (job.wide_loss) {
    c = all.wide.finish(job.plan->out_type[0], call);
  } else if (!job.forced) {
    const double e = (all.slack + all.sum.bound(4 * all.rows)) * (1 + 0x1p-20);
    c = num::round_loss(job.plan->out_type[0], all.sum.total(), e, call);
  }
  return {c.value, c.decided, false};
}

}  // namespace

constinit const row_kernels row_table = {
    .rows =
        [](const row_job& job, row_worker& w, std::int64_t begin, std::int64_t end) noexcept {
          with_operation(job, [&]<op_id Op>() { row_walker<Op>(job, w).rows(begin, end); });
        },
    .begin =
        [](const row_job& job, std::int64_t row) noexcept {
          row_phase next = row_phase::done;
          with_operation(job,
                         [&]<op_id Op>() { next = row_walker<Op>(job, job.worker(0)).begin(row_of<Op>(job), row); });
          return next;
        },
    .piece =
        [](const row_job& job, row_worker& w, row_phase phase, std::int64_t begin, std::int64_t end) noexcept {
          with_operation(job, [&]<op_id Op>() {
            row_walker<Op>(job, w).piece(row_of<Op>(job), part_of<Op>(w), phase, begin, end);
          });
        },
    .join =
        [](const row_job& job, int team, row_phase phase) noexcept {
          row_phase next = row_phase::done;
          with_operation(job, [&]<op_id Op>() {
            const auto parts = [&](int i) -> auto& { return part_of<Op>(job.worker(i)); };
            next = row_walker<Op>(job, job.worker(0)).join(row_of<Op>(job), phase, team, parts);
          });
          return next;
        },
    .start_loss =
        [](const row_job& job, int workers) noexcept {
          with_loss(job, [&]<op_id Op>() {
            for (int i = 0; i < workers; ++i) {
              auto& s = loss_of<num::row_rule<Op>>(job.worker(i));
              s = {};
              s.wide.start();
            }
          });
        },
    .loss =
        [](const row_job& job, int workers) noexcept {
          row_loss l{};
          with_loss(job, [&]<op_id Op>() { l = finish_loss<Op>(job, workers); });
          return l;
        },
};

}  // namespace repdl::cpu::REPDL_ISA
