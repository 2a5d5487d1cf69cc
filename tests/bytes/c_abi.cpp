// Bytes as one call of the C ABI: an operation, tensors and attributes with any fields. What no library could check is left
// out: an address points to as many elements as shape and strides say, an array has as many entries as its count. So tensors
// of more elements than `most_elements`, or that reach further than `most_bytes`, have an address only in calls that do not
// follow it.
//
// Whatever comes, a call returns; where it is refused, it says why and leaves the outputs as they were.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.h"
#include "tests/bytes/targets.hpp"

namespace fuzz {
namespace {

constexpr std::int64_t most_elements = 4096;
constexpr std::int64_t most_bytes = 1 << 16;

// Takes numbers off the input; zeros, when it has ended.
class reader {
 public:
  explicit reader(bytes input) : left_(input) {}

  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t b = left_.front();
    left_ = left_.subspan(1);
    return b;
  }
  template <class T>
  T raw() {
    std::array<std::uint8_t, sizeof(T)> all;
    for (std::uint8_t& b : all) b = byte();
    T value;
    std::memcpy(&value, all.data(), sizeof value);
    return value;
  }
  /// One of n values.
  std::size_t choice(std::size_t n) { return byte() % n; }
  /// True once in n times.
  bool rarely(std::size_t n) { return byte() % n == n - 1; }
  /// Small, mostly; else an extreme one, else any.
  std::int64_t integer() {
    const std::uint8_t b = byte();
    if (b < 240) return b % 16 - 4;
    constexpr std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min(),
                                         std::int64_t{1} << 62,
                                         std::int64_t{1} << 61,
                                         (std::int64_t{1} << 31) - 1,
                                         std::int64_t{1} << 32,
                                         -(std::int64_t{1} << 40),
                                         most_elements};
    return b < 248 ? extremes[b - 240] : raw<std::int64_t>();
  }

 private:
  bytes left_;
};

// Arrays of exactly their size on the heap, for AddressSanitizer.
template <class T>
class arrays {
 public:
  T* add(std::size_t n) { return all_.emplace_back(new T[n]()).get(); }

 private:
  std::deque<std::unique_ptr<T[]>> all_;
};

// What the elements of a tensor reach, in bytes from its first one on.
struct reach {
  bool known = false;  // else there are too many, or the shape is wrong
  std::int64_t lo = 0, hi = 0;
};

reach reach_of(const repdl_tensor& t) {
  reach r;
  const std::int64_t size = std::max(1, t.dtype.bits / 8);
  if (t.ndim < 0 || t.ndim > 8 || t.byte_offset > most_bytes || (t.ndim > 0 && t.shape == nullptr)) return r;
  std::int64_t count = 1, step = 1;
  for (int a = t.ndim; a-- > 0;) {
    const std::int64_t n = t.shape[a], stride = t.strides == nullptr ? step : t.strides[a];
    if (n < 0 || n > most_elements || stride > most_bytes || stride < -most_bytes) return r;
    count *= n;
    step *= std::max<std::int64_t>(n, 1);
    if (count > most_elements || step > most_elements) return r;
    (stride < 0 ? r.lo : r.hi) += stride * std::max<std::int64_t>(n - 1, 0) * size;
  }
  r.hi += static_cast<std::int64_t>(t.byte_offset) + (count > 0 ? size : 0);
  r.lo += static_cast<std::int64_t>(t.byte_offset);
  if (count == 0) r.lo = r.hi = 0;
  r.known = r.hi - std::min<std::int64_t>(r.lo, 0) <= most_bytes;
  return r;
}

// An operation, so that most inputs that were kept still mean theirs when others are added: that whose name, with the
// number, has the greatest hash (FNV-1a).
const repdl::op_info& operation(std::uint16_t number) {
  const auto hash = [number](const repdl::op_info& op) {
    std::uint32_t h = 2166136261u;
    const auto add = [&h](int byte) { h = (h ^ static_cast<std::uint8_t>(byte)) * 16777619u; };
    for (const char c : op.name) add(c);
    add(number);
    add(number >> 8);
    return h ^ h >> 15;
  };
  return *std::ranges::max_element(repdl::operations(), {}, hash);
}

// One call and the memory that it may use.
class call {
 public:
  explicit call(bytes input) : from_(input) {
    info_ = &operation(from_.raw<std::uint16_t>());
    require(repdl_op_find(info_->name.c_str(), &op_) == REPDL_OK, "an operation that is not found");
  }

  void run() {
    switch (from_.choice(8)) {
      case 0:
        return infer();
      case 1:
        return plan();
      case 2:
        return fingerprint();
      case 3:
        return create();
      default:
        return compute();
    }
  }

 private:
  static void check(repdl_status status) {
    require(status >= REPDL_OK && status <= REPDL_UNDECIDED, "a status that is none, or an internal error");
    if (status == REPDL_OK) return;
    require(std::strlen(repdl_last_error()) > 0 && std::strlen(repdl_last_error_site()) > 0, "an error without words");
  }

  repdl_data_type type() {
    constexpr repdl_data_type types[] = {{2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1},
                                         {0, 64, 1}, {6, 8, 1},  {0, 32, 1}, {2, 32, 1}};
    const std::uint8_t b = from_.byte();
    if (b < 250) return types[b % 8];
    return {from_.byte(), from_.byte(), from_.raw<std::uint16_t>()};
  }

  // Its description; no address yet.
  repdl_tensor* description() {
    repdl_tensor& t = *tensors_.add(1);
    t.dtype = type();
    t.device = {1, 0};
    if (from_.rarely(64))
      t.device = {static_cast<std::int32_t>(from_.integer()), static_cast<std::int32_t>(from_.integer())};
    t.ndim = static_cast<std::int32_t>(from_.choice(5));
    if (from_.rarely(32)) t.ndim = static_cast<std::int32_t>(from_.integer());
    const auto entries = static_cast<std::size_t>(std::clamp(t.ndim, 0, 12));
    if (!from_.rarely(64)) {
      t.shape = integers_.add(entries);
      std::generate_n(t.shape, entries, [&] { return size(); });
    }
    if (from_.rarely(4)) {
      t.strides = integers_.add(entries);
      std::generate_n(t.strides, entries, [&] { return from_.integer(); });
    }
    if (from_.rarely(16)) t.byte_offset = static_cast<std::uint64_t>(from_.integer());
    return &t;
  }
  std::int64_t size() {
    const std::uint8_t b = from_.byte();
    return b < 240 ? b % 6 : from_.integer();
  }

  // Memory for exactly what it reaches, or a part of memory that several tensors share. Contents from the input.
  void place(repdl_tensor& t) {
    const reach r = reach_of(t);
    if (!r.known || from_.rarely(32)) return;
    const std::int64_t lo = std::min<std::int64_t>(r.lo, 0);
    const auto bytes = static_cast<std::size_t>(r.hi - lo);
    std::byte* memory = nullptr;
    if (from_.rarely(8)) {
      if (shared_ == nullptr) shared_ = fill(most_bytes);
      memory = shared_ + std::min<std::size_t>(from_.choice(4) * 8, static_cast<std::size_t>(most_bytes) - bytes);
    } else {
      memory = fill(std::max<std::size_t>(bytes, 1));
    }
    t.data = memory - lo;
  }
  std::byte* fill(std::size_t n) {
    std::byte* const memory = memory_.add(n);
    std::array<std::uint8_t, 16> pattern;
    for (std::uint8_t& b : pattern) b = from_.byte();
    for (std::size_t i = 0; i < n; ++i) memory[i] = static_cast<std::byte>(pattern[i % pattern.size()] + i / 64);
    blocks_.emplace_back(memory, n);
    return memory;
  }

  std::int32_t count(std::size_t usual) {
    if (!from_.rarely(16)) return static_cast<std::int32_t>(usual);
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(from_.integer(), std::numeric_limits<std::int32_t>::min(), 40));
  }

  // So many tensors as the operation takes, mostly.
  const repdl_tensor** tensors(std::size_t usual, std::int32_t& n, bool follow) {
    n = count(usual);
    if (from_.rarely(64)) return nullptr;
    const repdl_tensor** const all = lists_.add(static_cast<std::size_t>(std::max(n, 0)));
    const bool alike = !from_.rarely(4);  // elementwise operations want one shape and type
    for (std::int32_t i = 0; i < n; ++i) {
      if (from_.rarely(16)) continue;
      repdl_tensor* t = description();
      if (alike && i > 0 && all[0] != nullptr) {
        *t = *all[0];
        t->data = nullptr;
      }
      if (follow) {
        place(*t);
      } else if (!from_.rarely(8)) {
        t->data = &anywhere_;
      }
      all[i] = t;
    }
    return all;
  }

  const char* text() {
    const auto n = from_.choice(24);
    char* const words = texts_.add(n + 1);
    std::generate_n(words, n, [&] { return static_cast<char>(from_.byte()); });
    return words;
  }

  repdl_attribute* attributes(std::int32_t& n) {
    const std::size_t most = info_->attrs.size();
    n = count(from_.choice(most + 1));
    if (from_.rarely(64)) return nullptr;
    repdl_attribute* const all = attributes_.add(static_cast<std::size_t>(std::max(n, 0)));
    for (std::int32_t i = 0; i < n; ++i) {
      repdl_attribute& a = all[i];
      a.name = from_.rarely(64) ? nullptr : from_.rarely(32) || most == 0 ? text() : nullptr;
      a.kind = static_cast<std::int32_t>(from_.integer());
      if (a.name == nullptr && most > 0 && !from_.rarely(64)) {
        const repdl::attribute_info& known = info_->attrs[from_.choice(most)];
        a.name = known.name.c_str();
        if (!from_.rarely(16)) a.kind = static_cast<std::int32_t>(known.kind);
      }
      value(a);
    }
    return all;
  }
  void value(repdl_attribute& a) {
    switch (a.kind) {
      case REPDL_REAL: {
        constexpr double some[] = {0, 1, 0.5, -2, 0x1p-200, 0x1p201, 1e308, std::numeric_limits<double>::infinity()};
        a.value.f64 = from_.rarely(4) ? from_.raw<double>() : some[from_.choice(8)];
        break;
      }
      case REPDL_TEXT: {
        constexpr const char* words[] = {"exact", "fma_chain", "mean", "sum", "none", "f32", "f16", "i64", ""};
        a.value.text = from_.rarely(16) ? nullptr : from_.rarely(8) ? text() : words[from_.choice(9)];
        break;
      }
      case REPDL_INTEGERS: {
        a.count = from_.rarely(16) ? from_.integer() : static_cast<std::int64_t>(from_.choice(5));
        const auto n = static_cast<std::size_t>(std::clamp<std::int64_t>(a.count, 0, 8));
        std::int64_t* const list = integers_.add(n);
        std::generate_n(list, n, [&] { return from_.integer(); });
        a.value.integers = from_.rarely(32) ? nullptr : list;
        break;
      }
      default:
        a.value.i64 = from_.integer();
    }
  }

  // One context for each tier that a call can begin with, and one whose last tier gives up at once.
  static repdl_context* context(std::size_t which) {
    static const std::array<repdl_context*, 5> all = [] {
      std::array<repdl_context*, 5> c{};
      for (std::size_t i = 0; i < c.size(); ++i) {
        repdl_context_options o{};
        o.size = sizeof o;
        o.threads = 1;
        o.first_tier = static_cast<std::int32_t>(i % 4);
        o.last_tier_bits = i == 4 ? -1 : 0;
        require(repdl_context_create(&o, &c[i]) == REPDL_OK, "no context");
      }
      return c;
    }();
    return all[which];
  }

  void infer() {
    std::int32_t in_count = 0, attribute_count = 0;
    const auto* const in = tensors(info_->in.size(), in_count, false);
    const auto* const attrs = attributes(attribute_count);
    repdl_data_type type{};
    std::int32_t ndim = -1;
    std::int64_t* const shape = integers_.add(8);
    const repdl_status status = repdl_infer(op_, in, in_count, attrs, attribute_count,
                                            static_cast<std::int32_t>(from_.integer()), &type, &ndim, shape);
    check(status);
    require(status != REPDL_OK || (ndim >= 0 && ndim <= 8 && type.lanes == 1), "what was inferred is no tensor");
  }

  // Checked and planned; nothing is followed.
  void plan() {
    std::int32_t in_count = 0, out_count = 0, attribute_count = 0;
    const auto* const in = tensors(info_->in.size(), in_count, false);
    const auto* const out = tensors(info_->out.size(), out_count, false);
    const auto* const attrs = attributes(attribute_count);
    repdl_context* const c = context(from_.choice(5));
    std::size_t bytes = 0;
    check(repdl_workspace(c, op_, in, in_count, out, out_count, attrs, attribute_count, &bytes));
    repdl_prepared* prepared = nullptr;
    const repdl_status status = repdl_prepare(c, op_, in, in_count, out, out_count, attrs, attribute_count, &prepared);
    check(status);
    require((status == REPDL_OK) == (prepared != nullptr), "prepared, and not");
    repdl_prepared_destroy(prepared);
  }

  void fingerprint() {
    std::int32_t n = 0;
    const auto* const all = tensors(2, n, true);
    char* const hex = texts_.add(65);
    const repdl_status status = repdl_fingerprint(context(0), all, n, hex);
    check(status);
    require(status != REPDL_OK || std::strspn(hex, "0123456789abcdef") == 64, "a fingerprint without 64 digits");
  }

  // Options, of which as many bytes are there as their size says.
  void create() {
    repdl_context_options o{};
    o.size = from_.rarely(4) ? static_cast<std::size_t>(from_.integer()) : sizeof o;
    if (from_.rarely(4))
      o.device = {static_cast<std::int32_t>(from_.integer()), static_cast<std::int32_t>(from_.integer())};
    o.threads = static_cast<std::int32_t>(from_.integer());
    o.first_tier = static_cast<std::int32_t>(from_.integer());
    o.last_tier_bits = static_cast<std::int32_t>(from_.integer());
    o.isa = from_.rarely(2) ? text() : nullptr;
    const std::size_t there = std::clamp(o.size, sizeof o.size, sizeof o);
    std::byte* const bytes = memory_.add(there);
    std::memcpy(bytes, &o, there);
    repdl_context* c = nullptr;
    const repdl_status status = repdl_context_create(reinterpret_cast<const repdl_context_options*>(bytes), &c);
    check(status);
    require((status == REPDL_OK) == (c != nullptr), "a context, and not");
    repdl_context_destroy(c);
  }

  // The outputs as they are inferred, mostly.
  const repdl_tensor** outputs(const repdl_tensor* const* in, std::int32_t in_count, const repdl_attribute* attrs,
                               std::int32_t attribute_count, std::int32_t& n) {
    if (from_.rarely(8)) return tensors(info_->out.size(), n, true);
    n = static_cast<std::int32_t>(info_->out.size());
    const repdl_tensor** const all = lists_.add(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) {
      repdl_tensor& t = *tensors_.add(1);
      t.shape = integers_.add(8);
      t.device = {1, 0};
      check(repdl_infer(op_, in, in_count, attrs, attribute_count, i, &t.dtype, &t.ndim, t.shape));
      place(t);
      all[i] = &t;
    }
    return all;
  }

  void compute() {
    std::int32_t in_count = 0, out_count = 0, attribute_count = 0;
    const auto* const in = tensors(info_->in.size(), in_count, true);
    const auto* const attrs = attributes(attribute_count);
    const auto* const out = outputs(in, in_count, attrs, attribute_count, out_count);
    std::vector<std::vector<std::byte>> before;
    for (const auto& b : blocks_) before.emplace_back(b.begin(), b.end());
    const repdl_status status =
        repdl_run(context(from_.choice(5)), op_, in, in_count, out, out_count, attrs, attribute_count);
    check(status);
    if (status == REPDL_OK || status == REPDL_UNDECIDED) return;
    for (std::size_t i = 0; i < before.size(); ++i) {
      require(std::equal(before[i].begin(), before[i].end(), blocks_[i].begin()), "refused, and memory was written");
    }
  }

  reader from_;
  const repdl::op_info* info_;
  const repdl_op* op_ = nullptr;
  arrays<repdl_tensor> tensors_;
  arrays<const repdl_tensor*> lists_;
  arrays<std::int64_t> integers_;
  arrays<repdl_attribute> attributes_;
  arrays<char> texts_;
  arrays<std::byte> memory_;
  std::vector<std::span<std::byte>> blocks_;
  std::byte* shared_ = nullptr;
  std::byte anywhere_{};
};

}  // namespace

void c_abi(bytes input) { call(input).run(); }

}  // namespace fuzz
