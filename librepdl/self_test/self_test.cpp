#include "librepdl/dispatch/self_test.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/ops/operations.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::dispatch {
namespace {

// known_answers, written from the reference by `repdl digests --add`: a line has the operands, eight hexadecimal digits each,
// and behind "->" the result.
struct answers {
  ops::op_id op;
  const char*
      lines;  // not std::string_view: to find the length of each while compiling takes more steps than clang allows
};
constexpr answers known[] = {
#define REPDL_KNOWN(op, lines) {ops::id_of<ops::op>, lines},
#include "known_answers.inc"
#undef REPDL_KNOWN
};

// Memory on the context's device for the length of the test.
class device_words {
 public:
  device_words(context::impl& c, std::size_t n)
      : c_(c),
        bytes_(n * 4),
        data_(c.backend->default_allocator().allocate(bytes_, c.options.where, c.options.stream)) {
    if (data_ == nullptr) {
      fail(error_site::out_of_memory, "self-test", "memory", std::to_string(bytes_) + " bytes", "none");
    }
  }
  ~device_words() { c_.backend->default_allocator().deallocate(data_, bytes_, c_.options.where, c_.options.stream); }
  device_words(const device_words&) = delete;
  device_words& operator=(const device_words&) = delete;
  void* data() const { return data_; }
  void write(const std::vector<std::uint32_t>& v, std::size_t element_bytes = 4) {
    std::vector<unsigned char> bytes(v.size() * element_bytes);
    for (std::size_t i = 0; i < v.size(); ++i) std::memcpy(bytes.data() + i * element_bytes, &v[i], element_bytes);
    c_.executor->copy(data_, bytes.data(), bytes.size());
  }
  std::vector<std::uint32_t> read(std::size_t n, std::size_t element_bytes = 4) const {
    std::vector<unsigned char> bytes(n * element_bytes);
    c_.executor->copy(bytes.data(), data_, bytes.size());
    std::vector<std::uint32_t> v(n);
    for (std::size_t i = 0; i < n; ++i) std::memcpy(&v[i], bytes.data() + i * element_bytes, element_bytes);
    return v;
  }

 private:
  context::impl& c_;
  std::size_t bytes_;
  void* data_;
};

std::string hex(std::uint32_t x) {
  char text[12];
  std::snprintf(text, sizeof text, "0x%08x", x);
  return text;
}

[[noreturn]] void wrong(const context::impl& c, std::string_view what, std::string_view input, std::uint32_t expected,
                        std::uint32_t got) {
  fail(error_site::self_test, "self-test",
       c.executor->isa() + ": " + std::string(what) + "(" + std::string(input) + ")", hex(expected), hex(got));
}

void test_elementwise(context::impl& c, ops::op_id op) {
  const ops::elementwise_row& row = ops::row_of(op);
  std::vector<std::uint32_t> in[ops::most_operands];
  std::vector<std::uint32_t> expected;
  for (const known_answer& k : known_answers(op)) {
    for (int i = 0; i < row.arity; ++i) in[i].push_back(k.in[i]);
    expected.push_back(k.out);
  }
  const std::size_t n = expected.size();
  if (n == 0) return;
  std::deque<device_words> operands;
  device_words out(c, n);
  const_tensor_view views[ops::most_operands];
  const sizes shape{static_cast<std::int64_t>(n)};
  for (int i = 0; i < row.arity; ++i) {
    const dtype type = row.operand_type(i, dtype::f32);
    device_words& words = operands.emplace_back(c, n);
    words.write(in[i], size_of(type));
    views[i] = const_tensor_view(words.data(), type, shape, c.options.where);
  }
  double defaults[ops::option_list::most] = {};
  const int options = row.options.count();
  for (int i = 0; i < options; ++i) defaults[i] = row.options.all[i].otherwise.in(dtype::f32);
  const dtype result = row.result_type(dtype::f32);
  c.run({op, dtype::f32, result}, plan::make_map(op, {views, static_cast<std::size_t>(row.arity)},
                                                 tensor_view(out.data(), result, shape, c.options.where),
                                                 {defaults, static_cast<std::size_t>(options)}));
  const std::vector<std::uint32_t> got = out.read(n, size_of(result));
  for (std::size_t i = 0; i < n; ++i) {
    if (got[i] == expected[i]) continue;
    std::string inputs = hex(in[0][i]);
    for (int k = 1; k < row.arity; ++k) inputs += ", " + hex(in[k][i]);
    wrong(c, row.name, inputs, expected[i], got[i]);
  }
}

// One call of an operation on words, compared with known ones.
template <class Op>
void expect(context::impl& c, const std::vector<std::pair<std::vector<std::uint32_t>, sizes>>& operands,
            const sizes& shape, const std::vector<std::uint32_t>& expected, const typename Op::attrs& attrs,
            std::string_view input) {
  std::deque<device_words> memory;
  std::vector<const_tensor_view> in;
  for (const auto& [words, of] : operands) {
    memory.emplace_back(c, words.size()).write(words);
    in.emplace_back(memory.back().data(), dtype::f32, of, c.options.where);
  }
  const device_words out(c, expected.size());
  const tensor_view view(out.data(), dtype::f32, shape, c.options.where);
  const plan::outputs one(&view, 1);
  constexpr subject what{Op::id, dtype::f32, dtype::f32};
  if constexpr (requires { plan::planner<Op>::make(in, one, attrs); }) {
    c.run(what, plan::planner<Op>::make(in, one, attrs));
  } else {
    c.run(what, plan::planner<Op>::make(in, view, attrs));
  }
  const std::vector<std::uint32_t> got = out.read(expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i]) wrong(c, Op::name, input, expected[i], got[i]);
  }
}

// One answer of each family that a wrong order, a lost bit or a flushed subnormal would change.
void test_structured(context::impl& c) {
  // (2^127, 2^-149, -2^127) has the sum 2^-149: every naive order loses it. As products with (1, 2, 1): 2^-148.
  const std::vector<std::uint32_t> x{0x7f000000, 0x00000001, 0xff000000};
  const std::vector<std::uint32_t> y{0x3f800000, 0x40000000, 0x3f800000};
  constexpr std::string_view products = "(2^127, 2^-149, -2^127), (1, 2, 1)";
  const sizes row{1, 1, 1, 3};
  const sizes one{1, 1, 1, 1};
  expect<ops::sum>(c, {{x, {1, 3}}}, {1}, {0x00000001}, {{.axis = 1}, {}}, "2^127, 2^-149, -2^127");
  expect<ops::matmul>(c, {{x, {1, 3}}, {y, {3, 1}}}, {1, 1}, {0x00000002}, {}, products);
  expect<ops::conv2d>(c, {{x, row}, {y, row}}, one, {0x00000002}, {}, products);
  expect<ops::conv2d_grad_weight>(c, {{y, row}, {x, row}}, one, {0x00000002}, {}, products);
  // -0 < +0; and the mean of the largest number with itself does not overflow.
  expect<ops::max_pool2d>(c, {{{0x80000000, 0x00000000}, {1, 1, 1, 2}}}, one, {0x00000000},
                          {.kernel = {1, 2}, .stride = {}}, "-0, 0");
  expect<ops::avg_pool2d>(c, {{{0x7f7fffff, 0x7f7fffff}, {1, 1, 1, 2}}}, one, {0x7f7fffff},
                          {.kernel = {1, 2}, .stride = {}}, "the largest number, twice");
  // -e^-(2^27 + 8) rounds to -0, and -(2^27 + 8) - e^-(2^27 + 8) lies beyond the midpoint -(2^27 + 8).
  expect<ops::log_softmax>(c, {{{0x4d000000, 0xc1000000}, {1, 2}}}, {1, 2}, {0x80000000, 0xcd000001}, {}, "2^27, -8");
  // 2^24 + 1 is a tie, and 2^-24 lies beside it. (binary64 has the sum: a wrong bound, of averages too, is not seen here.)
  expect<ops::upsample_nearest2d_backward>(c, {{{0x4b800000, 0x3f800000, 0x33800000}, {1, 1, 1, 3}}}, one, {0x4b800001},
                                           {{}, ops::pair{1, 1}}, "2^24, 1, 2^-24");
  // 3 2^-150 is a tie.
  expect<ops::linspace>(c, {}, {3}, {0x00000000, 0x00000002, 0x00000003}, {{.start = 0, .end = 0x1.8p-148}, 3, {}},
                        "start 0, end 3 2^-149");
  // From the reference.
  expect<ops::normal>(
      c, {}, {8}, {0xbf0b1553, 0xbde3e148, 0x402245c5, 0x3f36797f, 0x3f5a2cc1, 0xbf5ceeea, 0x40194105, 0x3f6c7eb8},
      {{.seed = 1, .stream = 2}, {.mean = 0.1, .stddev = 1.5}, {}, {}}, "seed 1, stream 2, mean 0.1, stddev 1.5");
  expect<ops::dropout>(
      c, {{{0x3f800001, 0xbf8ccccd, 0x00000003, 0x7f7fffff, 0x80000000, 0x3eaaaaab, 0xc0490fdb, 0x7fc00001}, {8}}}, {8},
      {0x3fa00001, 0xbfb00000, 0x00000004, 0, 0x80000000, 0x3ed55556, 0xc07b53d2, 0}, {{.seed = 1, .stream = 2}, 0.2},
      "seed 1, stream 2, p 0.2");
  // 1 - 2^-25 is a tie.
  expect<ops::sgd>(c, {{{0x3f800000}, {1}}, {{0x3f800000}, {1}}}, {1}, {0x3f800000}, {.lr = 0x1p-25}, "1, 1");
}

}  // namespace

std::vector<known_answer> known_answers(ops::op_id op) {
  std::vector<known_answer> all;
  const int operands = ops::row_of(op).arity;
  for (const answers& a : known) {
    if (a.op != op) continue;
    const char* at = a.lines;
    const auto number = [&](int separator) {
      std::uint32_t x = 0;
      std::from_chars(at, at + 8, x, 16);
      at += 8 + separator;
      return x;
    };
    while (*at != '\0') {
      known_answer k{};
      for (int i = 0; i < operands; ++i) k.in[i] = number(i + 1 < operands ? 1 : 4);  // " ", " -> "
      k.out = number(1);
      all.push_back(k);
    }
  }
  return all;
}

void self_test(context::impl& c) {
  if (c.options.where.kind != device_kind::cpu) return;  // before each kernel's first use: kernel_tests.hpp
  static std::mutex mutex;
  static std::set<std::string> passed;
  const std::string key = c.executor->isa() + "/" + name_of(c.options.where);
  const std::lock_guard lock(mutex);
  if (passed.contains(key)) return;
  // As every other context would run them: forced tiers and small budgets are this context's business.
  const context_options own = c.options;
  c.options.first_tier = tier::proved;
  c.options.last_tier_bits = context_options{}.last_tier_bits;
  for (std::size_t i = 0; i < ops::elementwise_rows().size(); ++i) test_elementwise(c, static_cast<ops::op_id>(i));
  test_structured(c);
  c.options = own;
  c.executor->reset_statistics();
  passed.insert(key);
}

}  // namespace repdl::dispatch
