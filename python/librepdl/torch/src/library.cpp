#include "library.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

namespace repdl_torch {
namespace {

const c_abi* abi = nullptr;
int (*asked_capturing)() = nullptr;

// Where a context runs.
struct place {
  at::Device device;
  void* stream;
  int threads;
  bool operator==(const place& o) const { return device == o.device && stream == o.stream && threads == o.threads; }
};

// On a GPU, workspaces are PyTorch's memory, of the current stream, which is the context's.
void* allocate(void*, size_t bytes, repdl_device, void*) {
  try {
    return c10::GetAllocator(c10::DeviceType::CUDA)->raw_allocate(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}
void deallocate(void*, void* data, size_t, repdl_device, void*) {
  c10::GetAllocator(c10::DeviceType::CUDA)->raw_deallocate(data);
}

// A context is used by one thread at a time. Threads that end give theirs to those that come; none is destroyed, since at the
// end of the process the GPU's driver may be gone before it.
struct context {
  place where;
  repdl_context* handle;
};
std::mutex free_mutex;
std::vector<context>& free_contexts() {
  static auto* const all = new std::vector<context>;
  return *all;
}

context make(const place& where) {
  {
    const std::lock_guard<std::mutex> lock(free_mutex);
    auto& all = free_contexts();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].where == where) {
        const context c = all[i];
        all[i] = all.back();
        all.pop_back();
        return c;
      }
    }
  }
  repdl_context_options o{};
  o.size = sizeof o;
  o.stream = where.stream;
  o.threads = where.threads;
  if (where.device.is_cuda()) {
    o.device = {2, where.device.index()};
    o.allocate = allocate;
    o.deallocate = deallocate;
  }
  context c{where, nullptr};
  TORCH_CHECK(abi->context_create(&o, &c.handle) == REPDL_OK, "librepdl: ", abi->last_error());
  return c;
}

struct contexts_of_thread {
  std::vector<context> all;
  ~contexts_of_thread() {
    const std::lock_guard<std::mutex> lock(free_mutex);
    free_contexts().insert(free_contexts().end(), all.begin(), all.end());
  }
};

repdl_context* context_at(const place& where) {
  thread_local contexts_of_thread mine;
  for (const context& c : mine.all) {
    if (c.where == where) return c.handle;
  }
  mine.all.push_back(make(where));
  return mine.all.back().handle;
}

place place_of(at::Device device) {
  if (device.is_cpu()) return {device, nullptr, at::in_parallel_region() ? 1 : at::get_num_threads()};
  TORCH_CHECK(device.is_cuda(), "librepdl: expected tensors on the CPU or a CUDA device, got one on ", device);
  const auto stream = c10::impl::getDeviceGuardImpl(device.type())->getStream(device);
  return {device, stream.native_handle(), 0};
}

repdl_data_type type_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return {2, 32, 1};
    case at::kDouble:
      return {2, 64, 1};
    case at::kHalf:
      return {2, 16, 1};
    case at::kBFloat16:
      return {4, 16, 1};
    case at::kLong:
      return {0, 64, 1};
    case at::kInt:
      return {0, 32, 1};
    case at::kBool:
      return {6, 8, 1};
    case at::kFloat8_e4m3fn:
      return {10, 8, 1};
    case at::kFloat8_e5m2:
      return {12, 8, 1};
    default:
      return {};
  }
}

}  // namespace

void attach(const c_abi* functions, int (*capturing)()) {
  TORCH_CHECK(functions->size == sizeof(c_abi),
              "librepdl.torch: its library was compiled for another version of librepdl");
  abi = functions;
  asked_capturing = capturing;
}
bool is_capturing(at::Device where) { return where.is_cuda() && asked_capturing != nullptr && asked_capturing() != 0; }

operand::operand(const Tensor* t) : tensor_{} {
  if (t == nullptr || !t->defined()) return;
  present_ = true;
  tensor_.data = const_cast<void*>(t->const_data_ptr());
  TORCH_CHECK(tensor_.data != nullptr || t->numel() == 0, "librepdl: a tensor of shape ", t->sizes(),
              " without memory (a ZeroTensor of forward-mode differentiation?)");
  tensor_.device = t->is_cuda() ? repdl_device{2, t->device().index()} : repdl_device{1, 0};
  tensor_.ndim = static_cast<int32_t>(t->dim());
  tensor_.dtype = type_of(t->scalar_type());
  TORCH_CHECK(tensor_.dtype.lanes == 1, "librepdl: no tensors of ", t->scalar_type());
  tensor_.shape = const_cast<int64_t*>(t->sizes().data());
  tensor_.strides = const_cast<int64_t*>(t->strides().data());
}
operand::operand(const void* number, repdl_data_type type) : tensor_{}, present_(true) {
  tensor_.data = const_cast<void*>(number);
  tensor_.device = {1, 0};
  tensor_.dtype = type;
}
operand operand::flat(const Tensor& t, const int64_t* size) {
  operand o(t);
  o.tensor_.ndim = 1;
  o.tensor_.shape = const_cast<int64_t*>(size);
  o.tensor_.strides = nullptr;
  return o;
}

operand operand::leading(const Tensor& t, int64_t rank) {
  operand o(t);
  o.tensor_.ndim = static_cast<int32_t>(rank);
  return o;
}

operation::operation(const std::string& name) {
  TORCH_CHECK(abi->op_find(name.c_str(), &op_) == REPDL_OK, "librepdl: ", abi->last_error());
}

template <class Call>
void operation::on(at::Device where, const Call& call) const {
  const c10::OptionalDeviceGuard guard(where.is_cuda() ? std::optional(where) : std::nullopt);
  const repdl_status status = call(context_at(place_of(where)));
  if (C10_LIKELY(status == REPDL_OK)) return;
  const std::string text = std::string("librepdl: ") + abi->last_error();
  TORCH_CHECK_WITH(OutOfMemoryError, status != REPDL_OUT_OF_MEMORY, text);
  const c10::SourceLocation here = {__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  if (status == REPDL_UNSUPPORTED || status == REPDL_INVALID_ARGUMENT) throw not_taken(here, text);
  throw failed(here, text);
}

void operation::operator()(at::Device where, at::ArrayRef<operand> in, at::ArrayRef<operand> out,
                           at::ArrayRef<attribute> options) const {
  c10::SmallVector<const repdl_tensor*, 12> list;
  for (const operand& o : in) list.push_back(o.get());
  for (const operand& o : out) list.push_back(o.get());
  on(where, [&](repdl_context* context) {
    return abi->run(context, op_, list.data(), static_cast<int32_t>(in.size()), list.data() + in.size(),
                    static_cast<int32_t>(out.size()), options.data(), static_cast<int32_t>(options.size()));
  });
}

void operation::run_list(at::Device where, size_t count, at::ArrayRef<operand> in, at::ArrayRef<operand> out,
                         at::ArrayRef<attribute> options) const {
  if (count == 0) return;
  std::vector<const repdl_tensor*> list;
  list.reserve(in.size() + out.size());
  for (const operand& o : in) list.push_back(o.get());
  for (const operand& o : out) list.push_back(o.get());
  const auto each = [&](size_t all) { return static_cast<int32_t>(all / count); };
  on(where, [&](repdl_context* context) {
    return abi->run_list(context, op_, static_cast<int32_t>(count), list.data(), each(in.size()),
                         list.data() + in.size(), each(out.size()), options.data(), each(options.size()));
  });
}

void operation::operator()(std::initializer_list<operand> in, std::initializer_list<const Tensor*> out,
                           std::initializer_list<attribute> options) const {
  c10::SmallVector<operand, 6> results;
  for (const Tensor* t : out) results.emplace_back(t);
  (*this)((*out.begin())->device(), in, results, options);
}

bool has_type(at::ScalarType type) { return type_of(type).lanes == 1; }
bool is_other_integer(at::ScalarType type) {
  switch (type) {
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kUInt16:
    case at::kUInt32:
    case at::kUInt64:
      return true;
    default:
      return false;
  }
}

Tensor fresh(at::IntArrayRef shape, at::ScalarType type, at::Device where, at::MemoryFormat format) {
  if (where.is_cpu()) return at::detail::empty_cpu(shape, type, false, format);
  const c10::DeviceGuard guard(where);
  return at::detail::empty_generic(shape, c10::GetAllocator(c10::DeviceType::CUDA),
                                   c10::DispatchKeySet(c10::DispatchKey::CUDA), type, format);
}
Tensor fresh_like(const Tensor& t) {
  if (t.is_contiguous()) return fresh(t.sizes(), t.scalar_type(), t.device());
  if (!t.is_non_overlapping_and_dense()) return at::empty_like(t);
  if (t.is_cpu()) return at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
  return at::empty_strided(t.sizes(), t.strides(), t.options());
}

void convert_into(const Tensor& from, const Tensor& to) {
  static const operation convert("convert");
  // PyTorch saturates in the format without infinities alone.
  const bool saturates = to.scalar_type() == at::kFloat8_e4m3fn && from.scalar_type() != to.scalar_type();
  saturates ? convert({from}, {&to}, {{"saturate", true}}) : convert({from}, {&to});
}

Tensor converted(const Tensor& t, at::ScalarType type) {
  if (t.scalar_type() == type) return t;
  if (!has_type(t.scalar_type()) || !has_type(type)) return t.to(type);
  Tensor out = at::empty(t.sizes(), t.options().dtype(type), t.suggest_memory_format());
  convert_into(t, out);
  return out;
}

Tensor number_on(double value, at::ScalarType type, at::Device where) {
  return at::full({}, value, at::TensorOptions().dtype(type).device(where));
}

}  // namespace repdl_torch
