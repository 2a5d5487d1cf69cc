// A convolution of format T as a Problem of the blocked product (gemm_loops.hpp). Its loaders widen numbers of 16 bits to
// binary32; besides numbers they load presence: 1 where (site, term) is present, 0 where it is absent, in the same layout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/product/conv.hpp"
#include "backends/cpu/product/gemm_loops.hpp"

namespace repdl::cpu::REPDL_ISA {

// Where nested axes stand.
struct axes_position {
  std::int64_t i[conv_rank];

  axes_position(const conv_axis* axes, std::int64_t index) noexcept {
    for (int d = conv_rank - 1; d > 0; --d) {
      if (axes[d].size == 1) {
        i[d] = 0;
      } else {
        i[d] = index % axes[d].size;
        index /= axes[d].size;
      }
    }
    i[0] = index;
  }
  template <class Stride>
  std::int64_t at(const conv_axis* axes, Stride stride) const noexcept {
    std::int64_t sum = 0;
    for (int d = 0; d < conv_rank; ++d) sum += i[d] * axes[d].*stride;
    return sum;
  }
  std::int64_t last() const noexcept { return i[conv_rank - 1]; }
  // On by `steps` along the last axis, which does not go past its end. False: another axis moved, too.
  bool step(const conv_axis* axes, std::int64_t steps) noexcept {
    i[conv_rank - 1] += steps;
    if (i[conv_rank - 1] < axes[conv_rank - 1].size) return true;
    for (int d = conv_rank - 1; d > 0 && i[d] == axes[d].size; --d) {
      i[d] = 0;
      ++i[d - 1];
    }
    return false;
  }
};
constexpr int inner_axis = conv_rank - 1;

// The first and the last + 1 of the indices j in [0, count) with 0 <= v + j * step < extent.
struct index_range {
  std::int64_t begin, end;
};
[[gnu::always_inline]] inline index_range within(std::int64_t v, std::int64_t step, std::int64_t extent,
                                                 std::int64_t count) noexcept {
  if (step == 0) return {0, v >= 0 && v < extent ? count : 0};
  std::int64_t begin, end;  // j >= begin: not before the extent (step > 0); j < end: not behind it
  if (step == 1) {
    begin = -v;
    end = extent - v;
  } else if (step == -1) {
    begin = v - extent + 1;
    end = v + 1;
  } else {
    const auto ceil_div = [](std::int64_t a, std::int64_t b) {  // b > 0
      return a > 0 ? (a + b - 1) / b : -(-a / b);
    };
    begin = step > 0 ? ceil_div(-v, step) : ceil_div(v - extent + 1, -step);
    end = step > 0 ? ceil_div(extent - v, step) : ceil_div(v + 1, -step);
  }
  begin = std::max<std::int64_t>(begin, 0);
  end = std::min(end, count);
  return {begin, std::max(begin, end)};
}

// to[0 .. count) = from[0], from[stride], ..., of the same format, or widened; or ones.
template <bool Presence, class T, class N>
[[gnu::always_inline]] inline void copy_run(const T* from, std::int64_t stride, std::int64_t count, N* to) noexcept {
  if constexpr (Presence) {
    for (std::int64_t j = 0; j < count; ++j) to[j] = 1;
  } else if constexpr (!std::is_same_v<T, N>) {
    if (stride == 1) return widen_run(from, count, to);
    for (std::int64_t j = 0; j < count; ++j) to[j] = num::widen_to_float(from[j * stride]);
  } else if (stride != 1) {
    for (std::int64_t j = 0; j < count; ++j) to[j] = from[j * stride];
  } else if (count >= 8) {
    // By eight; the last eight may overlap the ones before.
    for (std::int64_t j = 0; j + 8 < count; j += 8) __builtin_memcpy(to + j, from + j, 8 * sizeof(T));
    __builtin_memcpy(to + count - 8, from + count - 8, 8 * sizeof(T));
  } else if (count >= 4) {
    __builtin_memcpy(to, from, 4 * sizeof(T));
    __builtin_memcpy(to + count - 4, from + count - 4, 4 * sizeof(T));
  } else {
    for (std::int64_t j = 0; j < count; ++j) to[j] = from[j];
  }
}

// dense(channel, term): nothing is absent.
template <class T>
struct dense_loader {
  using number = number_of<T>;
  const conv_product* p;
  const T* data;

  template <int Width>
  void load(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    const conv_axis* const axes = p->term;
    if (p->dense_line) {
      return loader_of<T>{data, p->dense_channel, axes[inner_axis].other}.template load<Width>(first, count, k0, terms,
                                                                                               to);
    }
    axes_position at(axes, k0);
    while (terms > 0) {
      const std::int64_t run = std::min(terms, axes[inner_axis].size - at.last());
      const loader_of<T> line{data + at.at(axes, &conv_axis::other), p->dense_channel, axes[inner_axis].other};
      line.template load<Width>(first, count, 0, run, to);
      to += run * Width;
      terms -= run;
      at.step(axes, run);
    }
  }
  template <int Width>
  void load_presence(std::int64_t, int, std::int64_t, std::int64_t terms, number* to) const noexcept {
    for (std::int64_t i = 0; i < terms * Width; ++i) to[i] = 1;
  }
};

// gathered(site, term), zero where it is absent.
template <class T>
struct gathered_loader {
  using number = number_of<T>;
  const conv_product* p;
  const T* data;

  template <int Width>
  void load(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    load_any<Width, false>(first, count, k0, terms, to);
  }
  template <int Width>
  void load_presence(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    load_any<Width, true>(first, count, k0, terms, to);
  }
  // No term of the site is absent.
  bool whole(std::int64_t site) const noexcept {
    const place s = place_of(site);
    return s.y + p->low_y >= 0 && s.y + p->high_y < p->height && s.x + p->low_x >= 0 && s.x + p->high_x < p->width;
  }

 private:
  struct place {
    std::int64_t offset, y, x;
  };

  place place_of(std::int64_t site) const noexcept {
    const axes_position at(p->site, site);
    return {p->origin + at.at(p->site, &conv_axis::gathered), p->y + at.at(p->site, &conv_axis::y),
            p->x + at.at(p->site, &conv_axis::x)};
  }
  place shift_of(const axes_position& at) const noexcept {
    return {at.at(p->term, &conv_axis::gathered), at.at(p->term, &conv_axis::y), at.at(p->term, &conv_axis::x)};
  }
  bool inside(std::int64_t y, std::int64_t x) const noexcept {
    return y >= 0 && y < p->height && x >= 0 && x < p->width;
  }

  // `count` steps along an axis from a place: the present ones are copied, the others set to zero.
  template <bool Presence>
  [[gnu::always_inline]] void line(const place& from, const conv_axis& axis, std::int64_t count,
                                   number* to) const noexcept {
    const std::int64_t last = count - 1;
    if (inside(from.y, from.x) && inside(from.y + last * axis.y, from.x + last * axis.x)) {
      return copy_run<Presence>(data + from.offset, axis.gathered, count, to);
    }
    const index_range in_y = within(from.y, axis.y, p->height, count);
    const index_range in_x = within(from.x, axis.x, p->width, count);
    const std::int64_t begin = std::max(in_y.begin, in_x.begin);
    const std::int64_t end = std::max(begin, std::min(in_y.end, in_x.end));
    if (begin >= end) {
      for (std::int64_t j = 0; j < count; ++j) to[j] = 0;
      return;
    }
    for (std::int64_t j = 0; j < begin; ++j) to[j] = 0;
    copy_run<Presence>(data + from.offset + begin * axis.gathered, axis.gathered, end - begin, to + begin);
    for (std::int64_t j = end; j < count; ++j) to[j] = 0;
  }

  template <int Width, bool Presence>
  void load_any(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    if constexpr (Width == 1) {
      return along_terms<Presence>(place_of(first), axes_position(p->term, k0), terms, to);
    } else {
      if (p->gather_terms) return by_terms<Width, Presence>(first, count, k0, terms, to);
      by_sites<Width, Presence>(first, count, k0, terms, to);
    }
  }

  template <bool Presence>
  void along_terms(const place& site, axes_position at, std::int64_t terms, number* to) const noexcept {
    const conv_axis& inner = p->term[inner_axis];
    while (terms > 0) {
      const std::int64_t run = std::min(terms, inner.size - at.last());
      const place shift = shift_of(at);
      line<Presence>({site.offset + shift.offset, site.y + shift.y, site.x + shift.x}, inner, run, to);
      to += run;
      terms -= run;
      at.step(p->term, run);
    }
  }

  // Site by site into a buffer, which is then transposed.
  template <int Width, bool Presence>
  void by_terms(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    constexpr std::int64_t chunk = 64;
    alignas(64) number lines[Width * chunk];
    place sites[Width];
    for (int l = 0; l < count; ++l) sites[l] = place_of(first + l);
    axes_position at(p->term, k0);
    while (terms > 0) {
      const std::int64_t some = std::min(terms, chunk);
      for (int l = 0; l < count; ++l) along_terms<Presence>(sites[l], at, some, lines + l * chunk);
      strided_loader<number>{lines, chunk, 1}.template load<Width>(0, count, 0, some, to);
      to += some * Width;
      terms -= some;
      k0 += some;
      if (terms > 0) at = axes_position(p->term, k0);
    }
  }

  // Term by term; sites that are neighbours along the last axis are a run.
  template <int Width, bool Presence>
  void by_sites(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, number* to) const noexcept {
    struct run {
      place from;
      std::int64_t begin, count;
    } runs[Width];
    int n = 0;
    axes_position site(p->site, first);
    for (int l = 0; l < count;) {
      const std::int64_t length = std::min<std::int64_t>(count - l, p->site[inner_axis].size - site.last());
      runs[n++] = {{p->origin + site.at(p->site, &conv_axis::gathered), p->y + site.at(p->site, &conv_axis::y),
                    p->x + site.at(p->site, &conv_axis::x)},
                   l,
                   length};
      l += static_cast<int>(length);
      site.step(p->site, length);
    }
    // The sites' extremes: a term that all of them have needs no further look.
    place low = place_of(first), high = low;
    for (int r = 0; r < n; ++r) {
      const std::int64_t steps = runs[r].count - 1;
      const std::int64_t y = runs[r].from.y + steps * p->site[inner_axis].y,
                         x = runs[r].from.x + steps * p->site[inner_axis].x;
      low.y = std::min({low.y, runs[r].from.y, y}), high.y = std::max({high.y, runs[r].from.y, y});
      low.x = std::min({low.x, runs[r].from.x, x}), high.x = std::max({high.x, runs[r].from.x, x});
    }
    const bool one_line = n == 1 && count == Width && p->site[inner_axis].gathered == 1;
    axes_position at(p->term, k0);
    place shift = shift_of(at);
    const conv_axis inner = p->term[inner_axis];
    const auto next = [&] {
      if (at.step(p->term, 1)) {
        shift = {shift.offset + inner.gathered, shift.y + inner.y, shift.x + inner.x};
      } else {
        shift = shift_of(at);
      }
    };
    for (std::int64_t k = 0; k < terms; ++k, to += Width, next()) {
      if (inside(low.y + shift.y, low.x + shift.x) && inside(high.y + shift.y, high.x + shift.x)) {
        if (one_line && !Presence) {
          copy_run<false>(data + runs[0].from.offset + shift.offset, 1, Width, to);
          continue;
        }
        for (int r = 0; r < n; ++r)
          copy_run<Presence>(data + runs[r].from.offset + shift.offset, p->site[inner_axis].gathered, runs[r].count,
                             to + runs[r].begin);
        for (int l = count; l < Width; ++l) to[l] = 0;
        continue;
      }
      for (int r = 0; r < n; ++r) {
        const run& s = runs[r];
        line<Presence>({s.from.offset + shift.offset, s.from.y + shift.y, s.from.x + shift.x}, p->site[inner_axis],
                       s.count, to + s.begin);
      }
      for (int l = count; l < Width; ++l) to[l] = 0;
    }
  }
};

// The batch is the group.
template <class T, bool SitesInRows>
struct conv_problem {
  using format = T;
  using number = number_of<T>;
  static constexpr bool is_scaled = false;
  static constexpr bool skips_terms = true;
  std::conditional_t<SitesInRows, gathered_loader<T>, dense_loader<T>> a;
  std::conditional_t<SitesInRows, dense_loader<T>, gathered_loader<T>> b;
  bool has_bias;

  conv_problem(const void* operands, std::int64_t group) noexcept {
    const auto& p = *static_cast<const conv_product*>(operands);
    const gathered_loader<T> gathered{&p, static_cast<const T*>(p.gathered) + group * p.gathered_group};
    const dense_loader<T> dense{&p, static_cast<const T*>(p.dense) + p.dense_first + group * p.dense_group};
    if constexpr (SitesInRows) {
      a = gathered;
      b = dense;
    } else {
      a = dense;
      b = gathered;
    }
    has_bias = p.bias != nullptr;
    bias_ = has_bias ? static_cast<const T*>(p.bias) + group * p.bias_group : nullptr;
    out_ = static_cast<T*>(p.out) + p.out_first + group * p.out_group;
    p_ = &p;
  }

  bool whole(std::int64_t i, std::int64_t j) const noexcept {
    if constexpr (SitesInRows) {
      (void)j;
      return a.whole(i);
    } else {
      (void)i;
      return b.whole(j);
    }
  }
  void load_bias(std::int64_t i, std::int64_t j, int count, number* to) const noexcept {
    const T* const from = bias_ + (SitesInRows ? j : i) * p_->bias_channel;
    const std::int64_t step = SitesInRows ? p_->bias_channel : 0;
    for (int c = 0; c < count; ++c) to[c] = static_cast<number>(num::widen(from[c * step]));
  }
  template <int Width>
  void store(std::int64_t i, std::int64_t j, int count, const T* from) const noexcept {
    axes_position site(p_->site, SitesInRows ? i : j);
    if constexpr (SitesInRows) {
      T* const to = out_ + site.at(p_->site, &conv_axis::other) + j * p_->out_channel;
      scatter(from, count, to, p_->out_channel);
    } else {
      const conv_axis& inner = p_->site[inner_axis];
      for (std::int64_t rest = count; rest > 0;) {
        const std::int64_t run = std::min(rest, inner.size - site.last());
        scatter(from, run, out_ + i * p_->out_channel + site.at(p_->site, &conv_axis::other), inner.other);
        from += run;
        rest -= run;
        site.step(p_->site, run);
      }
    }
  }

 private:
  [[gnu::always_inline]] static void scatter(const T* from, std::int64_t count, T* to, std::int64_t stride) noexcept {
    if (stride == 1) return copy_run<false>(from, 1, count, to);
    for (std::int64_t c = 0; c < count; ++c) to[c * stride] = from[c];
  }

  const conv_product* p_;
  const T* bias_;
  T* out_;
};

}  // namespace repdl::cpu::REPDL_ISA
