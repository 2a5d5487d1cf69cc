#include "librepdl/owning_tensor.hpp"

#include <utility>

#include "librepdl/api/context_impl.hpp"

namespace repdl {
namespace {

void* allocate(context::impl& owner, const tensor_spec& spec) {
  const std::int64_t bytes = byte_count(spec);
  return bytes == 0 ? nullptr : owner.allocate("tensor", static_cast<std::size_t>(bytes));
}

}  // namespace

tensor::tensor(context& ctx, dtype type, const sizes& shape)
    : owner_(&context_access::of(ctx)), view_(allocate(*owner_, {type, shape}), type, shape, ctx.where()) {}

tensor::tensor(tensor&& other) noexcept : owner_(other.owner_), view_(std::exchange(other.view_, {})) {}

tensor& tensor::operator=(tensor&& other) noexcept {
  tensor taken(std::move(other));
  std::swap(owner_, taken.owner_);
  std::swap(view_, taken.view_);
  return *this;
}

tensor::~tensor() {
  if (bytes() != 0) owner_->deallocate(view_.data(), bytes());
}

context* tensor::handle() const noexcept { return view_ ? owner_->handle : nullptr; }

void tensor::check(dtype type, std::size_t count) const {
  if (type != view_.type()) {
    fail(error_site::output_dtype, "tensor", "values", std::string(name_of(view_.type())), std::string(name_of(type)));
  }
  if (count != static_cast<std::size_t>(view_.count())) {
    fail(error_site::length_mismatch, "tensor", "values",
         std::to_string(view_.count()) + " elements for shape " + to_string(view_.shape()), std::to_string(count));
  }
}

void tensor::copy(void* to, const void* from) const {
  if (bytes() != 0) owner_->executor->copy(to, from, bytes());
}

}  // namespace repdl
