#include "backends/loaded/exported_backend.hpp"

#include <atomic>

#include "backends/loaded/table.hpp"
#include "librepdl/dispatch/kernel_tests.hpp"

namespace repdl::loaded {
namespace {

std::atomic<const library_table*> library{nullptr};

void devices(asker<device_list>& to) noexcept {
  contain(to, [&] {
    device_list list;
    list.devices = exported_backend().devices(&list.why_none);
    to.answer(list);
  });
}

dispatch::executor* open(const context_options& o, asker<executor_facts>& to) noexcept {
  std::unique_ptr<dispatch::executor> e;
  contain(to, [&] {
    e = exported_backend().open(o);
    to.answer({e->isa(), e->threads()});
  });
  return e.release();
}
void close(dispatch::executor* e) noexcept { delete e; }

void* allocate(std::size_t bytes, const device& where, void* stream, caller& to) noexcept {
  void* data = nullptr;
  contain(to, [&] { data = exported_backend().default_allocator().allocate(bytes, where, stream); });
  return data;
}
void deallocate(void* data, std::size_t bytes, const device& where, void* stream) noexcept {
  exported_backend().default_allocator().deallocate(data, bytes, where, stream);
}

template <class Plan>
dispatch::work* prepare(dispatch::executor& e, const Plan& p, const dispatch::launch& l, std::byte* memory,
                        plan::checked_size& bytes, caller& to) noexcept {
  dispatch::work* made = nullptr;
  contain(to, [&] {
    dispatch::task t(memory);
    e.prepare(p, l, t);
    bytes = t->bytes();
    made = t.release();
  });
  return made;
}
void run(dispatch::work& w, void* workspace, caller& to) noexcept {
  contain(to, [&] { w.run(workspace); });
}
void destroy(dispatch::work& w) noexcept { w.~work(); }

void synchronize(dispatch::executor& e, caller& to) noexcept {
  contain(to, [&] { e.synchronize(); });
}
void read_statistics(dispatch::executor& e, asker<statistics>& to) noexcept {
  contain(to, [&] { to.answer(e.read_statistics()); });
}
void reset_statistics(dispatch::executor& e, caller& to) noexcept {
  contain(to, [&] { e.reset_statistics(); });
}
void copy(dispatch::executor& e, void* data, const void* from, std::size_t bytes, caller& to) noexcept {
  contain(to, [&] { e.copy(data, from, bytes); });
}
void test_kernels(dispatch::executor& e, asker<dispatch::kernel_report>& to) noexcept {
  contain(to, [&] { to.answer(e.test_kernels()); });
}

}  // namespace
}  // namespace repdl::loaded

extern "C" [[gnu::visibility("default")]] const repdl::loaded::backend_table* repdl_cuda_backend_1(
    const repdl::loaded::library_table* asking) {
  using namespace repdl::loaded;
  static const backend_table table{.build = build_id(),
                                   .devices = devices,
                                   .open = open,
                                   .allocate = allocate,
                                   .deallocate = deallocate,
                                   .close = close,
#define REPDL_PREPARE(family) .prepare_##family = prepare<repdl::plan::family##_plan>,
                                   REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE
                                       .synchronize = synchronize,
                                   .read_statistics = read_statistics,
                                   .reset_statistics = reset_statistics,
                                   .copy = copy,
                                   .test_kernels = test_kernels,
                                   .run = run,
                                   .destroy = destroy};
  const library_table* none = nullptr;
  library.compare_exchange_strong(none, asking);
  return &table;
}

// The kernels' tests, which the library runs.
namespace repdl::dispatch {

using loaded::library;

std::vector<subject> kernel_test_subjects() {
  return loaded::ask<std::vector<subject>>([](auto& c) { library.load()->test_subjects(c); });
}
context& kernel_test_context(const device& where, void* stream) {
  context* tested = nullptr;
  loaded::cross([&](auto& c) { tested = library.load()->test_context(where, stream, c); });
  return *tested;
}
std::size_t kernel_test_groups(const subject& what) {
  std::size_t groups = 0;
  loaded::cross([&](auto& c) { groups = library.load()->test_groups(what, c); });
  return groups;
}
void plan_kernel_test_group(context& tested, const subject& what, std::size_t group) {
  loaded::cross([&](auto& c) { library.load()->plan_test(tested, what, group, c); });
}
std::string run_kernel_test_group(context& tested, const subject& what, std::size_t group) {
  return loaded::ask<std::string>([&](auto& c) { library.load()->run_test(tested, what, group, c); });
}

}  // namespace repdl::dispatch
