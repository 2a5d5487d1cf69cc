#include "librepdl/api/call_list.hpp"

#include <utility>
#include <vector>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/ops/registry.hpp"
#include "librepdl/plan/call_list.hpp"

namespace repdl {
namespace {

// Memory for plans; while it lives, elementwise calls of the context are left there. A call within a call, of an allocator's, has its own.
class listed_calls {
 public:
  explicit listed_calls(context::impl& c) : context_(c), plans(std::move(kept())) { context_.list = &plans; }
  ~listed_calls() {
    finish();
    plans.clear();
    kept() = std::move(plans);
  }
  listed_calls(const listed_calls&) = delete;
  listed_calls& operator=(const listed_calls&) = delete;
  void finish() noexcept { context_.list = nullptr; }

 private:
  static std::vector<plan::map_plan>& kept() noexcept {
    thread_local std::vector<plan::map_plan> of_thread;
    return of_thread;
  }
  context::impl& context_;

 public:
  std::vector<plan::map_plan> plans;
};

}  // namespace

void api::run_list(context& ctx, const op_info& op, std::size_t count, const std::function<void(std::size_t)>& one) {
  const auto all = [&] {
    for (std::size_t k = 0; k < count; ++k) one(k);
  };
  if (op.family != "elementwise") return all();
  context::impl& c = context_access::of(ctx);
  listed_calls listed(c);
  all();
  listed.finish();
  for (std::span<const plan::map_plan> rest = listed.plans; !rest.empty();) {
    const std::span<const plan::map_plan> together = rest.first(plan::independent(rest));
    plan::map_plan first = together[0];
    if (together.size() > 1) first.list = together;
    c.run({first.op, first.in_type, first.out_type}, first);
    rest = rest.subspan(together.size());
  }
}

void call_list(context& ctx, const op_info& op, std::span<const list_call> calls) {
  api::run_list(ctx, op, calls.size(),
                [&](std::size_t k) { call(ctx, op, calls[k].in, calls[k].out, calls[k].attrs); });
}

}  // namespace repdl
