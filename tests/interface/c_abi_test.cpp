// What the C ABI says of operations, devices and instruction sets, and managed DLPack tensors. Errors: error_test.cpp.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "librepdl/api/dlpack_types.hpp"
#include "librepdl/librepdl.h"
#include "librepdl/librepdl.hpp"

using namespace repdl;

namespace {

template <class Info>
Info sized() {
  Info info{};
  info.size = sizeof info;
  return info;
}

bool same_types(const repdl_operand_info& c, const operand_info& o) {
  if (static_cast<std::size_t>(c.type_count) != o.types.size()) return false;
  for (std::size_t i = 0; i < o.types.size(); ++i) {
    const repdl_data_type& t = c.types[i];
    if (t.lanes != 1 || api::type_from_dlpack(t.code, t.bits) != o.types[i]) return false;
  }
  return true;
}

}  // namespace

// As in DLPack 1.0, dlpack.h: version, manager_ctx, deleter, flags, dl_tensor.
static_assert(sizeof(repdl_managed_tensor) == 80);
static_assert(offsetof(repdl_managed_tensor, version) == 0 && offsetof(repdl_managed_tensor, manager) == 8);
static_assert(offsetof(repdl_managed_tensor, deleter) == 16 && offsetof(repdl_managed_tensor, flags) == 24);
static_assert(offsetof(repdl_managed_tensor, tensor) == 32);

TEST_SUITE_BEGIN("portable");

TEST_CASE("C ABI: operations, their operands and attributes are those of operations()") {
  CHECK(static_cast<std::size_t>(repdl_op_count()) == operations().size());
  for (const op_info& o : operations()) {
    INFO(o.name);
    const repdl_op *op = nullptr, *by_function = nullptr;
    REQUIRE(repdl_op_find(o.name.c_str(), &op) == REPDL_OK);
    REQUIRE(repdl_op_find(o.function.c_str(), &by_function) == REPDL_OK);
    CHECK(op == by_function);
    auto info = sized<repdl_op_info>();
    REQUIRE(repdl_op_get_info(op, &info) == REPDL_OK);
    CHECK(info.name == o.name);
    CHECK(info.function == o.function);
    CHECK(info.family == o.family);
    CHECK(info.formula == o.formula);
    CHECK(info.proof == o.proof);
    CHECK(info.bits == o.bits);
    REQUIRE(static_cast<std::size_t>(info.input_count) == o.in.size());
    REQUIRE(static_cast<std::size_t>(info.output_count) == o.out.size());
    REQUIRE(static_cast<std::size_t>(info.attribute_count) == o.attrs.size());
    auto operand = sized<repdl_operand_info>();
    const auto check = [&](repdl_status s, const operand_info& want) {
      const bool same = s == REPDL_OK && operand.name == want.name && (operand.optional == 1) == want.optional &&
                        same_types(operand, want);
      CHECK_MESSAGE(same, want.name);
    };
    for (std::size_t i = 0; i < o.in.size(); ++i) check(repdl_op_input(op, static_cast<int>(i), &operand), o.in[i]);
    for (std::size_t i = 0; i < o.out.size(); ++i) check(repdl_op_output(op, static_cast<int>(i), &operand), o.out[i]);
    for (std::size_t i = 0; i < o.attrs.size(); ++i) {
      const attribute_info& want = o.attrs[i];
      auto a = sized<repdl_attribute_info>();
      REQUIRE(repdl_op_attribute(op, static_cast<int>(i), &a) == REPDL_OK);
      const bool same = a.name == want.name && a.description == want.doc && a.default_text == want.default_text &&
                        a.kind == static_cast<int>(want.kind) && (a.required == 1) == want.required;
      CHECK_MESSAGE(same, want.name);
    }
  }
}

TEST_CASE("C ABI: structs of a caller that knows fewer members") {
  const repdl_op* op = nullptr;
  REQUIRE(repdl_op_find("exp", &op) == REPDL_OK);
  repdl_op_info info;
  std::memset(static_cast<void*>(&info), 0x5a, sizeof info);
  info.size = offsetof(repdl_op_info, family);
  REQUIRE(repdl_op_get_info(op, &info) == REPDL_OK);
  CHECK(info.size == offsetof(repdl_op_info, family));
  CHECK(info.function == std::string("exp"));
  CHECK(info.bits == 0x5a5a5a5a);
}

TEST_CASE("C ABI: devices and instruction sets") {
  std::int32_t count = 0;
  const std::vector<device_info> all = devices();
  REQUIRE(repdl_devices(nullptr, 0, &count) == REPDL_OK);
  REQUIRE(static_cast<std::size_t>(count) == all.size());
  std::vector<repdl_device_info> list(all.size() + 1);
  REQUIRE(repdl_devices(list.data(), count + 1, &count) == REPDL_OK);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(list[i].device.device_type == static_cast<std::int32_t>(all[i].where.kind));
    CHECK(list[i].device.device_id == all[i].where.index);
    CHECK(list[i].name == all[i].name.substr(0, sizeof list[i].name - 1));
  }

  const std::vector<isa_info> sets = instruction_sets();
  REQUIRE(repdl_instruction_sets(nullptr, 0, &count) == REPDL_OK);
  REQUIRE(static_cast<std::size_t>(count) == sets.size());
  std::vector<repdl_isa_info> names(sets.size());
  REQUIRE(repdl_instruction_sets(names.data(), count, &count) == REPDL_OK);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    CHECK(names[i].name == sets[i].name);
    CHECK((names[i].available == 1) == sets[i].available);
  }
  // No more than there is room for.
  list[0].device.device_id = 77;
  REQUIRE(repdl_devices(list.data(), 0, &count) == REPDL_OK);
  CHECK(list[0].device.device_id == 77);
}

TEST_CASE("C ABI: managed tensors") {
  repdl_context* ctx = nullptr;
  REQUIRE(repdl_context_create(nullptr, &ctx) == REPDL_OK);
  const repdl_op* exp_op = nullptr;
  REQUIRE(repdl_op_find("exp", &exp_op) == REPDL_OK);
  const float values[6] = {0, 1, -1, 2, -2, 0.5f};
  float want[6], got[6];
  context cpp({.threads = 1});
  exp(cpp, const_tensor_view(values), tensor_view(want));

  const std::int64_t shape[2] = {2, 3};
  repdl_managed_tensor *x = nullptr, *y = nullptr;
  REQUIRE(repdl_tensor_create(ctx, {2, 32, 1}, 2, shape, &x) == REPDL_OK);
  REQUIRE(repdl_tensor_create(ctx, {2, 32, 1}, 2, shape, &y) == REPDL_OK);
  CHECK((x->version.major == 1 && x->flags == 0 && x->tensor.ndim == 2 && x->tensor.shape[1] == 3));
  REQUIRE(repdl_copy(ctx, x->tensor.data, values, sizeof values) == REPDL_OK);
  x->flags = REPDL_READ_ONLY;
  const repdl_tensor *in = nullptr, *out = nullptr;
  REQUIRE(repdl_tensor_of(x, 0, &in) == REPDL_OK);
  REQUIRE(repdl_tensor_of(y, 1, &out) == REPDL_OK);
  REQUIRE(repdl_run(ctx, exp_op, &in, 1, &out, 1, nullptr, 0) == REPDL_OK);
  REQUIRE(repdl_copy(ctx, got, y->tensor.data, sizeof got) == REPDL_OK);
  CHECK(std::memcmp(got, want, sizeof got) == 0);
  x->deleter(x);
  y->deleter(y);

  repdl_managed_tensor* empty = nullptr;
  const std::int64_t none[1] = {0};
  REQUIRE(repdl_tensor_create(ctx, {4, 16, 1}, 1, none, &empty) == REPDL_OK);
  CHECK(empty->tensor.shape[0] == 0);
  empty->deleter(empty);
  REQUIRE(repdl_tensor_create(ctx, {0, 64, 1}, 0, nullptr, &empty) == REPDL_OK);
  CHECK((empty->tensor.ndim == 0 && empty->tensor.data != nullptr));
  empty->deleter(empty);
  repdl_context_destroy(ctx);
}

TEST_SUITE_END();
