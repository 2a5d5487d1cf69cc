// The C ABI: translation only.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "librepdl/api/call_list.hpp"
#include "librepdl/api/context_impl.hpp"
#include "librepdl/api/dlpack_types.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.h"
#include "librepdl/owning_tensor.hpp"
#include "librepdl/version.hpp"

namespace {
// The caller's functions as an allocator.
struct callers_memory final : repdl::allocator {
  explicit callers_memory(const repdl_context_options& given) : options(given) {}
  static repdl_device device_of(const repdl::device& where) {
    return {static_cast<std::int32_t>(where.kind), where.index};
  }
  void* allocate(std::size_t bytes, const repdl::device& where, void* stream) override {
    return options.allocate(options.memory_state, bytes, device_of(where), stream);
  }
  void deallocate(void* data, std::size_t bytes, const repdl::device& where, void* stream) noexcept override {
    options.deallocate(options.memory_state, data, bytes, device_of(where), stream);
  }
  repdl_context_options options;
};
}  // namespace

struct repdl_context {
  std::unique_ptr<callers_memory> memory;  // outlives the context
  repdl::context context;
};
struct repdl_prepared {
  repdl::prepared_calls calls;
};

namespace repdl {
namespace {

struct last_error {
  std::string message;
  std::string site;
};
last_error& last() {
  thread_local last_error e;
  return e;
}

// Runs body and turns exceptions into a status.
template <class Body>
repdl_status guarded(Body&& body) noexcept {
  try {
    body();
    return REPDL_OK;
  } catch (const error& e) {
    last() = {e.what(), std::string(info_of(e.site()).name)};
    return static_cast<repdl_status>(e.code());
  } catch (const std::bad_alloc&) {
    last() = {"out of host memory", std::string(info_of(error_site::out_of_memory).name)};
    return REPDL_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    last() = {e.what(), "internal"};
    return REPDL_INTERNAL;
  }
}

void need(const void* p, std::string_view function, std::string_view argument) {
  if (p == nullptr) fail(error_site::null_argument, function, argument, "an address", "a null pointer");
}

const op_info& info(const repdl_op* op) { return *reinterpret_cast<const op_info*>(op); }
const repdl_op* handle(const op_info* op) { return reinterpret_cast<const repdl_op*>(op); }

// An operand's name, "in[2]", made where a message needs it.
struct operand_name {
  std::string_view list;
  std::int32_t index;
  std::string operator()(std::string_view member = "") const {
    return std::string(list) + "[" + std::to_string(index) + "]" + std::string(member);
  }
};

template <class Name>
dtype type_from(const repdl_data_type& t, const Name& name) {
  if (t.lanes != 1) {
    fail(error_site::foreign_lanes, "DLPack tensor", name(), "lanes = 1", std::to_string(t.lanes));
  }
  if (const auto type = api::type_from_dlpack(t.code, t.bits)) return *type;
  fail(error_site::foreign_dtype, "DLPack tensor", name(), ops::describe(ops::ALL),
       "code " + std::to_string(t.code) + ", " + std::to_string(t.bits) + " bits");
}

template <class Name>
device device_from(const repdl_device& d, const Name& name) {
  if (d.device_type != 1 && d.device_type != 2) {
    fail(error_site::foreign_device, "DLPack tensor", name(), "device type 1 (CPU) or 2 (CUDA)",
         std::to_string(d.device_type));
  }
  return {static_cast<device_kind>(d.device_type), d.device_id};
}

tensor_view view_of(const repdl_tensor* t, const operand_name& name) {
  if (t == nullptr) return {};
  const dtype type = type_from(t->dtype, name);
  const device where = device_from(t->device, name);
  if (t->ndim < 0) fail(error_site::rank_too_large, "DLPack tensor", name(), "ndim >= 0", std::to_string(t->ndim));
  const auto rank = static_cast<std::size_t>(t->ndim);
  if (rank > 0 && t->shape == nullptr) need(nullptr, "DLPack tensor", name(".shape"));
  if (t->byte_offset >= std::uint64_t{1} << 63) {
    fail(error_site::stride_overflow, "DLPack tensor", name(".byte_offset"), "a number below 2^63",
         std::to_string(t->byte_offset));
  }
  const sizes shape(std::span<const std::int64_t>(t->shape, rank));
  void* data = t->data == nullptr ? nullptr : static_cast<std::byte*>(t->data) + t->byte_offset;
  if (t->strides == nullptr) return tensor_view(data, type, shape, where);
  return tensor_view(data, type, shape, sizes(std::span<const std::int64_t>(t->strides, rank)), where);
}

template <class View>
plan::inline_vector<View, 8> views_of(const repdl_tensor* const* t, std::int32_t n, error_site count_site,
                                      std::string_view what) {
  if (n < 0) fail(count_site, "repdl", std::string(what) + "_count", "a count >= 0", std::to_string(n));
  if (n > 0) need(t, "repdl", what);
  plan::inline_vector<View, 8> v;
  for (std::int32_t i = 0; i < n; ++i) v.push_back(view_of(t[i], {what, i}));
  return v;
}

// No attribute is a longer list than a shape.
std::vector<std::int64_t> integers_of(const repdl_attribute& a) {
  if (a.count < 0 || a.count > max_rank) {
    fail(error_site::attribute_value, "repdl", std::string(a.name) + ".count", "0 to " + std::to_string(max_rank),
         std::to_string(a.count));
  }
  if (a.count > 0) need(a.value.integers, "repdl", a.name);
  return {a.value.integers, a.value.integers + a.count};
}

bool boolean_of(const repdl_attribute& a) {
  if (a.value.i64 != 0 && a.value.i64 != 1) {
    fail(error_site::attribute_value, "repdl", a.name, "a boolean, 0 or 1", std::to_string(a.value.i64));
  }
  return a.value.i64 == 1;
}

void set_attributes(attributes& list, const repdl_attribute* a, std::int32_t n) {
  if (n < 0) fail(error_site::attribute_value, "repdl", "attribute_count", "a count >= 0", std::to_string(n));
  if (n > 0) need(a, "repdl", "attributes");
  list.reserve(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) {
    if (a[i].name == nullptr) need(nullptr, "repdl", operand_name{"attributes", i}(".name"));
    attribute_value value;
    switch (a[i].kind) {
      case REPDL_BOOLEAN:
        value = boolean_of(a[i]);
        break;
      case REPDL_INTEGER:
        value = a[i].value.i64;
        break;
      case REPDL_REAL:
        value = a[i].value.f64;
        break;
      case REPDL_TEXT:
        need(a[i].value.text, "repdl", a[i].name);
        value = std::string(a[i].value.text);
        break;
      case REPDL_INTEGERS:
        value = integers_of(a[i]);
        break;
      default:
        fail(error_site::attribute_kind, "repdl", a[i].name, "a kind from 0 to 4", std::to_string(a[i].kind));
    }
    list.push_back({a[i].name, std::move(value)});
  }
}
attributes attributes_of(const repdl_attribute* a, std::int32_t n) {
  attributes list;
  set_attributes(list, a, n);
  return list;
}
// A thread's list is kept from call to call: no heap. (A call within a call, of an allocator's, has its own.)
class kept_attributes {
 public:
  kept_attributes(const repdl_attribute* a, std::int32_t n) : list_(std::move(kept())) { set_attributes(list_, a, n); }
  ~kept_attributes() {
    list_.clear();
    kept() = std::move(list_);
  }
  kept_attributes(const kept_attributes&) = delete;
  kept_attributes& operator=(const kept_attributes&) = delete;
  operator const attributes&() const noexcept { return list_; }

 private:
  static attributes& kept() noexcept {
    thread_local attributes of_thread;
    return of_thread;
  }
  attributes list_;
};

// What the caller gave, of any version: members that it does not know are 0.
repdl_context_options whole(const repdl_context_options& given) {
  constexpr std::string_view function = "repdl_context_create";
  repdl_context_options o{};
  if (given.size < sizeof o.size || given.size > sizeof o) {
    fail(error_site::attribute_value, function, "options.size",
         "sizeof(repdl_context_options), at most " + std::to_string(sizeof o) + " in version " REPDL_VERSION,
         std::to_string(given.size));
  }
  std::memcpy(&o, &given, given.size);
  if ((o.allocate == nullptr) != (o.deallocate == nullptr)) {
    need(nullptr, function, o.allocate == nullptr ? "options.allocate" : "options.deallocate");
  }
  return o;
}

context_options options_of(const repdl_context_options& o, allocator* memory) {
  constexpr std::string_view function = "repdl_context_create";
  context_options options;
  options.memory = memory;
  // {0, 0} is an options struct that says nothing about the device.
  if (o.device.device_type != 0 || o.device.device_id != 0)
    options.where = device_from(o.device, [] { return "options.device"; });
  options.stream = o.stream;
  options.threads = o.threads;
  if (o.first_tier < 0 || o.first_tier > 3) {
    fail(error_site::attribute_value, function, "first_tier", "0 to 3", std::to_string(o.first_tier));
  }
  options.first_tier = static_cast<tier>(o.first_tier);
  if (o.isa != nullptr) options.isa = o.isa;
  if (o.last_tier_bits < -1) {
    fail(error_site::attribute_value, function, "last_tier_bits", ">= -1", std::to_string(o.last_tier_bits));
  }
  if (o.last_tier_bits != 0) options.last_tier_bits = std::max(0, o.last_tier_bits);
  return options;
}

// Writes as much of an answer as the caller's struct has room for.
template <class Info>
void answer(Info full, Info* info, std::string_view function) {
  need(info, function, "info");
  const std::size_t size = info->size;
  if (size < sizeof info->size || size > sizeof full) {
    fail(error_site::attribute_value, function, "info.size",
         "the struct's size, at most " + std::to_string(sizeof full) + " in version " REPDL_VERSION,
         std::to_string(size));
  }
  full.size = size;
  std::memcpy(static_cast<void*>(info), &full, size);
}

template <class List>
const auto& entry_of(const List& list, std::int32_t index, std::string_view function, error_site site) {
  if (index < 0 || static_cast<std::size_t>(index) >= list.size()) {
    fail(site, function, "index", "a number below " + std::to_string(list.size()), std::to_string(index));
  }
  return list[static_cast<std::size_t>(index)];
}

// The element types of operands, as C has them: one list for each set of them that there is.
const std::vector<repdl_data_type>& types_of(const operand_info& operand) {
  static std::mutex guard;
  static std::map<std::vector<dtype>, std::vector<repdl_data_type>> all;
  const std::scoped_lock lock(guard);
  std::vector<repdl_data_type>& types = all[operand.types];
  if (types.empty()) {
    for (const dtype t : operand.types) {
      types.push_back({api::dlpack_type_of(t).code, api::dlpack_type_of(t).bits, 1});
    }
  }
  return types;
}

void describe(const std::vector<operand_info>& list, std::int32_t index, repdl_operand_info* info,
              std::string_view function, error_site site) {
  const operand_info& o = entry_of(list, index, function, site);
  const std::vector<repdl_data_type>& types = types_of(o);
  answer<repdl_operand_info>({.size = 0,
                              .name = o.name.c_str(),
                              .optional = o.optional ? 1 : 0,
                              .type_count = static_cast<std::int32_t>(types.size()),
                              .types = types.data()},
                             info, function);
}

// Writes the first entries of a list that the caller has room for.
template <class Entry, class List, class Write>
void answer_list(std::string_view function, const List& all, Entry* list, std::int32_t capacity, std::int32_t* count,
                 const Write& write) {
  need(count, function, "count");
  if (capacity < 0) fail(error_site::attribute_value, function, "capacity", "a number >= 0", std::to_string(capacity));
  if (capacity > 0) need(list, function, "list");
  *count = static_cast<std::int32_t>(all.size());
  for (std::int32_t i = 0; i < std::min(capacity, *count); ++i) write(all[static_cast<std::size_t>(i)], list[i]);
}

// A managed tensor that the library made, what it points to, and where its memory came from.
struct owned_tensor {
  repdl_managed_tensor managed{};
  sizes shape;
  tensor memory;

  owned_tensor(context& ctx, dtype type, const sizes& of) : shape(of), memory(ctx, type, of) {
    const api::dlpack_type t = api::dlpack_type_of(type);
    managed.version = {1, 0};
    managed.manager = this;
    managed.deleter = [](repdl_managed_tensor* self) { delete static_cast<owned_tensor*>(self->manager); };
    managed.tensor = {.data = memory.view().data(),
                      .device = callers_memory::device_of(ctx.where()),
                      .ndim = shape.size(),
                      .dtype = {t.code, t.bits, 1},
                      .shape = shape.begin(),
                      .strides = nullptr,
                      .byte_offset = 0};
  }
};

}  // namespace
}  // namespace repdl

using namespace repdl;

repdl_status repdl_context_create(const repdl_context_options* o, repdl_context** context) {
  return guarded([&] {
    need(context, "repdl_context_create", "context");
    *context = nullptr;
    const repdl_context_options given = o == nullptr ? repdl_context_options{} : whole(*o);
    auto memory = given.allocate == nullptr ? nullptr : std::make_unique<callers_memory>(given);
    repdl::context made(options_of(given, memory.get()));
    *context = new repdl_context{std::move(memory), std::move(made)};
  });
}

void repdl_context_destroy(repdl_context* context) { delete context; }

repdl_status repdl_context_synchronize(repdl_context* context) {
  return guarded([&] {
    need(context, "repdl_context_synchronize", "context");
    context->context.synchronize();
  });
}

repdl_status repdl_context_workspace(repdl_context* context, void* data, size_t bytes) {
  return guarded([&] {
    need(context, "repdl_context_workspace", "context");
    context->context.use_workspace(data, bytes);
  });
}

repdl_status repdl_allocate(repdl_context* context, size_t bytes, void** data) {
  return guarded([&] {
    need(context, "repdl_allocate", "context");
    need(data, "repdl_allocate", "data");
    *data = context->context.allocate(bytes);
  });
}

void repdl_deallocate(repdl_context* context, void* data, size_t bytes) {
  if (context != nullptr) context->context.deallocate(data, bytes);
}

repdl_status repdl_copy(repdl_context* context, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    need(context, "repdl_copy", "context");
    if (bytes != 0) {
      need(to, "repdl_copy", "to");
      need(from, "repdl_copy", "from");
    }
    context->context.copy(to, from, bytes);
  });
}

repdl_status repdl_context_statistics(repdl_context* context, int64_t elements[4]) {
  return guarded([&] {
    need(context, "repdl_context_statistics", "context");
    need(elements, "repdl_context_statistics", "elements");
    const statistics s = context->context.read_statistics();
    std::memcpy(elements, s.elements, sizeof s.elements);
  });
}

int32_t repdl_op_count(void) { return static_cast<int32_t>(operations().size()); }

repdl_status repdl_op_at(int32_t index, const repdl_op** op) {
  return guarded([&] {
    need(op, "repdl_op_at", "op");
    if (index < 0 || index >= repdl_op_count()) {
      fail(error_site::unknown_operation, "repdl_op_at", "index", "0 to " + std::to_string(repdl_op_count() - 1),
           std::to_string(index));
    }
    *op = handle(&operations()[static_cast<std::size_t>(index)]);
  });
}

repdl_status repdl_op_find(const char* name, const repdl_op** op) {
  return guarded([&] {
    need(name, "repdl_op_find", "name");
    need(op, "repdl_op_find", "op");
    const op_info* o = find(name);
    if (o == nullptr) {
      fail(error_site::unknown_operation, "repdl_op_find", "name", "the name of an operation",
           "'" + std::string(name) + "'");
    }
    *op = handle(o);
  });
}

const char* repdl_op_describe(const repdl_op* op) {
  if (op == nullptr) return nullptr;
  static const std::vector<std::string> lines = [] {
    std::vector<std::string> all;
    for (const op_info& o : operations()) {
      std::string line = o.name + "(";
      for (std::size_t i = 0; i < o.in.size(); ++i) line += (i == 0 ? "" : ", ") + o.in[i].name;
      for (std::size_t i = 0; i < o.attrs.size(); ++i) line += (i == 0 ? "; " : ", ") + o.attrs[i].name;
      all.push_back(line + ") = " + o.formula);
    }
    return all;
  }();
  return lines[static_cast<std::size_t>(info(op).id)].c_str();
}

repdl_status repdl_op_get_info(const repdl_op* op, repdl_op_info* given) {
  return guarded([&] {
    need(op, "repdl_op_get_info", "op");
    const op_info& o = info(op);
    answer<repdl_op_info>({.size = 0,
                           .name = o.name.c_str(),
                           .function = o.function.c_str(),
                           .family = o.family.c_str(),
                           .formula = o.formula.c_str(),
                           .proof = o.proof.c_str(),
                           .bits = o.bits,
                           .input_count = static_cast<std::int32_t>(o.in.size()),
                           .output_count = static_cast<std::int32_t>(o.out.size()),
                           .attribute_count = static_cast<std::int32_t>(o.attrs.size())},
                          given, "repdl_op_get_info");
  });
}

repdl_status repdl_op_input(const repdl_op* op, int32_t index, repdl_operand_info* given) {
  return guarded([&] {
    need(op, "repdl_op_input", "op");
    describe(info(op).in, index, given, "repdl_op_input", error_site::input_count);
  });
}

repdl_status repdl_op_output(const repdl_op* op, int32_t index, repdl_operand_info* given) {
  return guarded([&] {
    need(op, "repdl_op_output", "op");
    describe(info(op).out, index, given, "repdl_op_output", error_site::output_count);
  });
}

repdl_status repdl_op_attribute(const repdl_op* op, int32_t index, repdl_attribute_info* given) {
  return guarded([&] {
    constexpr std::string_view function = "repdl_op_attribute";
    need(op, function, "op");
    const attribute_info& a = entry_of(info(op).attrs, index, function, error_site::unknown_attribute);
    answer<repdl_attribute_info>({.size = 0,
                                  .name = a.name.c_str(),
                                  .description = a.doc.c_str(),
                                  .default_text = a.default_text.c_str(),
                                  .kind = static_cast<std::int32_t>(a.kind),
                                  .required = a.required ? 1 : 0},
                                 given, function);
  });
}

repdl_status repdl_devices(repdl_device_info* list, int32_t capacity, int32_t* count) {
  return guarded([&] {
    answer_list("repdl_devices", devices(), list, capacity, count, [](const device_info& d, repdl_device_info& out) {
      out = {callers_memory::device_of(d.where), {}};
      d.name.copy(out.name, sizeof out.name - 1);
    });
  });
}

repdl_status repdl_instruction_sets(repdl_isa_info* list, int32_t capacity, int32_t* count) {
  return guarded([&] {
    static const std::vector<isa_info> all = instruction_sets();
    answer_list("repdl_instruction_sets", all, list, capacity, count, [](const isa_info& i, repdl_isa_info& out) {
      out = {i.name.c_str(), i.available ? 1 : 0};
    });
  });
}

repdl_status repdl_tensor_create(repdl_context* context, repdl_data_type dtype, int32_t ndim, const int64_t* shape,
                                 repdl_managed_tensor** managed) {
  return guarded([&] {
    constexpr std::string_view function = "repdl_tensor_create";
    need(context, function, "context");
    need(managed, function, "managed");
    *managed = nullptr;
    if (ndim < 0) fail(error_site::rank_too_large, function, "ndim", "ndim >= 0", std::to_string(ndim));
    if (ndim > 0) need(shape, function, "shape");
    const auto type = type_from(dtype, [] { return "dtype"; });
    const sizes of(std::span<const std::int64_t>(shape, static_cast<std::size_t>(ndim)));
    *managed = &(new owned_tensor(context->context, type, of))->managed;
  });
}

repdl_status repdl_tensor_of(const repdl_managed_tensor* managed, int32_t writable, const repdl_tensor** tensor) {
  return guarded([&] {
    constexpr std::string_view function = "repdl_tensor_of";
    need(tensor, function, "tensor");
    *tensor = nullptr;
    need(managed, function, "managed");
    if (managed->version.major != 1) {
      fail(error_site::foreign_version, function, "managed", "a DLPack tensor of major version 1",
           std::to_string(managed->version.major));
    }
    if (writable != 0 && (managed->flags & REPDL_READ_ONLY) != 0) {
      fail(error_site::read_only, function, "managed", "a tensor that may be written", "one that may only be read");
    }
    *tensor = &managed->tensor;
  });
}

repdl_status repdl_infer(const repdl_op* op, const repdl_tensor* const* in, int32_t in_count,
                         const repdl_attribute* attrs, int32_t attribute_count, int32_t index, repdl_data_type* dtype,
                         int32_t* ndim, int64_t shape[8]) {
  return guarded([&] {
    need(op, "repdl_infer", "op");
    need(dtype, "repdl_infer", "dtype");
    need(ndim, "repdl_infer", "ndim");
    need(shape, "repdl_infer", "shape");
    const auto specs = infer(info(op), views_of<const_tensor_view>(in, in_count, error_site::input_count, "in"),
                             attributes_of(attrs, attribute_count));
    if (index < 0 || static_cast<std::size_t>(index) >= specs.size()) {
      fail(error_site::output_count, "repdl_infer", "index", "0 to " + std::to_string(specs.size() - 1),
           std::to_string(index));
    }
    const tensor_spec& s = specs[static_cast<std::size_t>(index)];
    const api::dlpack_type t = api::dlpack_type_of(s.type);
    *dtype = {t.code, t.bits, 1};
    *ndim = s.shape.size();
    std::copy(s.shape.begin(), s.shape.end(), shape);
  });
}

namespace {

void run(std::string_view function, repdl_context* context, const repdl_op* op, const repdl_tensor* const* in,
         int32_t in_count, const repdl_tensor* const* out, int32_t out_count, const repdl_attribute* attrs,
         int32_t attribute_count) {
  need(context, function, "context");
  need(op, function, "op");
  call(context->context, info(op), views_of<const_tensor_view>(in, in_count, error_site::input_count, "in"),
       views_of<tensor_view>(out, out_count, error_site::output_count, "out"), kept_attributes(attrs, attribute_count));
}

}  // namespace

repdl_status repdl_workspace(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in,
                             int32_t in_count, const repdl_tensor* const* out, int32_t out_count,
                             const repdl_attribute* attrs, int32_t attribute_count, size_t* bytes) {
  return guarded([&] {
    need(context, "repdl_workspace", "context");
    need(bytes, "repdl_workspace", "bytes");
    *bytes = context->context.workspace_for(
        [&] { run("repdl_workspace", context, op, in, in_count, out, out_count, attrs, attribute_count); });
  });
}

repdl_status repdl_run(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in, int32_t in_count,
                       const repdl_tensor* const* out, int32_t out_count, const repdl_attribute* attrs,
                       int32_t attribute_count) {
  return guarded([&] { run("repdl_run", context, op, in, in_count, out, out_count, attrs, attribute_count); });
}

repdl_status repdl_run_list(repdl_context* context, const repdl_op* op, int32_t count, const repdl_tensor* const* in,
                            int32_t in_count, const repdl_tensor* const* out, int32_t out_count,
                            const repdl_attribute* attrs, int32_t attribute_count) {
  return guarded([&] {
    constexpr std::string_view function = "repdl_run_list";
    need(context, function, "context");
    need(op, function, "op");
    if (count < 0) fail(error_site::attribute_value, function, "count", "a count >= 0", std::to_string(count));
    const auto of_call = [](auto* list, std::size_t k, std::int32_t n) {
      return list == nullptr ? list : list + static_cast<std::ptrdiff_t>(k) * n;
    };
    api::run_list(context->context, info(op), static_cast<std::size_t>(count), [&](std::size_t k) {
      run(function, context, op, of_call(in, k, in_count), in_count, of_call(out, k, out_count), out_count,
          of_call(attrs, k, attribute_count), attribute_count);
    });
  });
}

repdl_status repdl_prepare(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in, int32_t in_count,
                           const repdl_tensor* const* out, int32_t out_count, const repdl_attribute* attrs,
                           int32_t attribute_count, repdl_prepared** prepared) {
  return guarded([&] {
    need(context, "repdl_prepare", "context");
    need(prepared, "repdl_prepare", "prepared");
    *prepared = nullptr;
    *prepared = new repdl_prepared{context->context.prepare(
        [&] { run("repdl_prepare", context, op, in, in_count, out, out_count, attrs, attribute_count); })};
  });
}

repdl_status repdl_prepared_run(repdl_prepared* prepared) {
  return guarded([&] {
    need(prepared, "repdl_prepared_run", "prepared");
    prepared->calls.run();
  });
}

void repdl_prepared_destroy(repdl_prepared* prepared) { delete prepared; }

repdl_status repdl_fingerprint(repdl_context* context, const repdl_tensor* const* tensors, int32_t count,
                               char hex[65]) {
  return guarded([&] {
    need(context, "repdl_fingerprint", "context");
    need(hex, "repdl_fingerprint", "hex");
    const std::string text =
        fingerprint(context->context, views_of<const_tensor_view>(tensors, count, error_site::input_count, "tensors"));
    std::memcpy(hex, text.c_str(), 65);
  });
}

const char* repdl_last_error(void) { return last().message.c_str(); }
const char* repdl_last_error_site(void) { return last().site.c_str(); }
const char* repdl_version(void) { return REPDL_VERSION; }
int32_t repdl_bits_version(void) { return REPDL_BITS_VERSION; }
