// A backend in a library of its own that needs no GPU: the CPU's, and faults on demand. For loaded_test.cpp.
#include "tests/interface/loaded_backend.hpp"

#include <memory>
#include <new>
#include <stdexcept>

#include "backends/cpu/core/cpu_backend.hpp"
#include "backends/loaded/exported_backend.hpp"
#include "librepdl/dispatch/kernel_tests.hpp"

namespace {

using namespace repdl;

const dispatch::backend& cpu_backend() {
  static const dispatch::backend b = cpu::cpu_backend();
  return b;
}

class test_executor final : public dispatch::executor {
 public:
  explicit test_executor(const context_options& o) : cpu_(cpu_backend().open(o)) {}

  const std::string& isa() const noexcept override { return cpu_->isa(); }
  int threads() const noexcept override { return cpu_->threads(); }
#define REPDL_PREPARE(family)                                                                         \
  void prepare(const plan::family##_plan& p, const dispatch::launch& l, dispatch::task& t) override { \
    cpu_->prepare(p, l, t);                                                                           \
  }
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE
  void synchronize() override { cpu_->synchronize(); }
  statistics read_statistics() override { return cpu_->read_statistics(); }
  void reset_statistics() override { cpu_->reset_statistics(); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (from != nullptr) return cpu_->copy(to, from, bytes);
    if (bytes < tests::other_faults) {
      fail(static_cast<error_site>(bytes), tests::fault_op, tests::fault_argument, tests::fault_expected,
           tests::fault_got);
    }
    if (bytes == tests::no_memory) throw std::bad_alloc();
    if (bytes == tests::standard_exception) throw std::logic_error(tests::fault_got);
    throw bytes;
  }
  dispatch::kernel_report test_kernels() override {
    dispatch::kernel_report r;
    static context& tested = dispatch::kernel_test_context(device{}, nullptr);
    for (const dispatch::subject& what : dispatch::kernel_test_subjects()) {
      dispatch::kernel_report::line line{.what = what};
      line.groups = static_cast<int>(dispatch::kernel_test_groups(what));
      if (const std::string text = dispatch::run_kernel_test_group(tested, what, 0); !text.empty()) {
        r.unreached.push_back(text);
      }
      r.lines.push_back(line);
    }
    try {
      dispatch::kernel_test_context(device{device_kind::cuda, 1000}, nullptr);
    } catch (const error& e) {  // of the library, caught here
      r.unreached.push_back(e.what());
      r.kernels = static_cast<int>(e.site());
    }
    return r;
  }

 private:
  std::unique_ptr<dispatch::executor> cpu_;
};

}  // namespace

const dispatch::backend& repdl::loaded::exported_backend() {
  static const dispatch::backend b{device_kind::cuda,
                                   [](std::string* why_none) {
                                     *why_none = tests::why_none;
                                     return std::vector<device_info>{{{device_kind::cuda, 3}, tests::device_name}};
                                   },
                                   [](const context_options& o) -> std::unique_ptr<dispatch::executor> {
                                     return std::make_unique<test_executor>(o);
                                   },
                                   cpu_backend().default_allocator};
  return b;
}
