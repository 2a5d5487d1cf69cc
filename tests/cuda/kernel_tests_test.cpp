// The calls that test a backend's kernels before their first use: legal, right on every instruction set, and able to
// find a fault.
#include "librepdl/dispatch/kernel_tests.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/ops/operations.hpp"

namespace {

using namespace repdl;

// An executor that computes what another one does, but for one wrong bit in one element of elementwise outputs, or one
// byte beyond them.
class faulty final : public dispatch::executor {
 public:
  faulty(std::unique_ptr<dispatch::executor> right, std::int64_t at) : right_(std::move(right)), at_(at) {}

  const std::string& isa() const noexcept override { return right_->isa(); }
  int threads() const noexcept override { return right_->threads(); }
#define REPDL_PREPARE(family) \
  void prepare(const plan::family##_plan& p, const dispatch::launch& l, dispatch::task& t) override { spoil(p, l, t); }
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE
  void synchronize() override { right_->synchronize(); }
  statistics read_statistics() override { return right_->read_statistics(); }
  void reset_statistics() override { right_->reset_statistics(); }
  void copy(void* to, const void* from, std::size_t bytes) override { right_->copy(to, from, bytes); }

 private:
  struct nothing final : dispatch::work {
    void run(void*) override {}
  };
  struct spoiled final : dispatch::work {
    spoiled(dispatch::executor& right, const plan::map_plan& p, const dispatch::launch& l, std::int64_t at)
        : out_(static_cast<unsigned char*>(p.out)), at_(at) {
      right.prepare(p, l, *right_);
    }
    void run(void* workspace) override {
      (*right_)->run(workspace);
      out_[at_] ^= 1;
    }
    std::unique_ptr<dispatch::stored_task> right_ = std::make_unique<dispatch::stored_task>();
    unsigned char* out_;
    std::int64_t at_;
  };
  template <class Plan>
  void spoil(const Plan&, const dispatch::launch&, dispatch::task& t) {
    t.emplace<nothing>();
  }
  void spoil(const plan::map_plan& p, const dispatch::launch& l, dispatch::task& t) {
    t.emplace<spoiled>(*right_, p, l, at_);
  }

  std::unique_ptr<dispatch::executor> right_;
  std::int64_t at_;
};

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("kernel tests: every call is legal and has the same bits on the instruction sets, by turns" *
          doctest::test_suite("portable values")) {
  std::vector<std::unique_ptr<context>> contexts;
  for (const isa_info& i : instruction_sets()) {
    if (i.available) contexts.push_back(std::make_unique<context>(context_options{.threads = 2, .isa = i.name}));
  }
  std::size_t groups = 0;
  for (const dispatch::subject& what : dispatch::kernel_test_subjects()) {
    const std::size_t count = dispatch::kernel_test_groups(what);
    CHECK(count > 0);
    for (std::size_t g = 0; g < count; ++g) {
      context& ctx = *contexts[groups++ % contexts.size()];
      CAPTURE(ctx.isa());
      CAPTURE(what.name());
      CHECK(dispatch::run_kernel_test_group(ctx, what, g) == "");
    }
  }
  MESSAGE(groups << " groups");
}

TEST_CASE("kernel tests: a wrong element and a write outside are found") {
  const dispatch::subject relu{ops::id_of<ops::relu>, dtype::f32, dtype::f32};
  const auto found = [&](std::int64_t at) {
    context ctx({.threads = 1});
    context::impl& c = context_access::of(ctx);
    c.executor = std::make_unique<faulty>(std::move(c.executor), at);
    return dispatch::run_kernel_test_group(ctx, relu, 0);
  };
  CHECK(found(0).find("relu: element 0 of shape [3, 2, 5, 3, 7], strides") == 0);
  CHECK(found(-1) == "relu: memory around the outputs was written");
}

TEST_CASE("kernel tests: operations that compute nothing are found") {
  for (const dispatch::subject& what : dispatch::kernel_test_subjects()) {
    context ctx({.threads = 1});
    context::impl& c = context_access::of(ctx);
    c.executor = std::make_unique<faulty>(std::move(c.executor), 0);
    CAPTURE(what.name());
    CHECK(dispatch::run_kernel_test_group(ctx, what, 0) != "");
  }
}

TEST_SUITE_END();
