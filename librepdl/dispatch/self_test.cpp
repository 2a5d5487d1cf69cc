#include "librepdl/dispatch/self_test.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::dispatch {
namespace {

struct known_answer {
  ops::op_id op;
  std::uint32_t in[3];
  std::uint32_t out;
};

// Hardest-to-round, subnormal and special inputs; written from the reference by `repdl digests --write`.
constexpr known_answer known[] = {
#define REPDL_KNOWN(op, x, y, z, out) {ops::op_id::op, {x, y, z}, out},
#include "librepdl/dispatch/known_answers.def"
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
  void write(const std::vector<std::uint32_t>& v) { c_.executor->copy(data_, v.data(), v.size() * 4); }
  std::vector<std::uint32_t> read(std::size_t n) const {
    std::vector<std::uint32_t> v(n);
    c_.executor->copy(v.data(), data_, n * 4);
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
  const ops::elementwise_row& row = ops::elementwise_rows[static_cast<int>(op)];
  std::vector<std::uint32_t> in[3];
  std::vector<std::uint32_t> expected;
  for (const known_answer& k : known) {
    if (k.op != op) continue;
    for (int i = 0; i < 3; ++i) in[i].push_back(k.in[i]);
    expected.push_back(k.out);
  }
  const std::size_t n = expected.size();
  if (n == 0) return;
  device_words x(c, n), y(c, n), z(c, n), out(c, n);
  device_words* const operands[] = {&x, &y, &z};
  const_tensor_view views[3];
  const sizes shape{static_cast<std::int64_t>(n)};
  for (int i = 0; i < row.arity; ++i) {
    operands[i]->write(in[i]);
    views[i] = const_tensor_view(operands[i]->data(), dtype::f32, shape, c.options.where);
  }
  c.run(row.name, plan::make_map(op, {views, static_cast<std::size_t>(row.arity)},
                                 tensor_view(out.data(), dtype::f32, shape, c.options.where)));
  const std::vector<std::uint32_t> got = out.read(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (got[i] == expected[i]) continue;
    std::string inputs = hex(in[0][i]);
    for (int k = 1; k < row.arity; ++k) inputs += ", " + hex(in[k][i]);
    wrong(c, row.name, inputs, expected[i], got[i]);
  }
}

// (2^127, 2^-149, -2^127) has the sum 2^-149: every naive order loses it. As a dot product with (1, 2, 1): 2^-148.
void test_products(context::impl& c) {
  device_words x(c, 3), y(c, 3), out(c, 1);
  x.write({0x7f000000, 0x00000001, 0xff000000});
  y.write({0x3f800000, 0x40000000, 0x3f800000});
  const const_tensor_view in[] = {const_tensor_view(x.data(), dtype::f32, {1, 3}, c.options.where),
                                  const_tensor_view(y.data(), dtype::f32, {3, 1}, c.options.where)};
  c.run("sum", plan::make_reduce(ops::op_id::sum, {in, 1}, tensor_view(out.data(), dtype::f32, {1}, c.options.where),
                                 {.axis = sizes{1}, .keepdim = false}));
  if (out.read(1)[0] != 0x00000001) wrong(c, "sum", "2^127, 2^-149, -2^127", 0x00000001, out.read(1)[0]);
  c.run("matmul", plan::make_matmul(in, tensor_view(out.data(), dtype::f32, {1, 1}, c.options.where), {}));
  if (out.read(1)[0] != 0x00000002) wrong(c, "matmul", "(2^127, 2^-149, -2^127), (1, 2, 1)", 2, out.read(1)[0]);
}

}  // namespace

void self_test(context::impl& c) {
  static std::mutex mutex;
  static std::set<std::string> passed;
  const std::string key = c.executor->isa() + "/" + name_of(c.options.where);
  const std::lock_guard lock(mutex);
  if (passed.contains(key)) return;
  for (int i = 0; i < ops::elementwise_count; ++i) test_elementwise(c, static_cast<ops::op_id>(i));
  test_products(c);
  c.executor->reset_statistics();
  passed.insert(key);
}

}  // namespace repdl::dispatch
