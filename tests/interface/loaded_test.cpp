// The boundary of a backend in a library of its own: bits, errors, statistics and reports cross it unchanged. The library
// of the tests has the CPU's kernels (loaded_backend.cpp), so none of this needs a GPU.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <typeinfo>
#include <vector>

#include "backends/loaded/loaded_backend.hpp"
#include "librepdl/api/context_impl.hpp"
#include "librepdl/dispatch/kernel_tests.hpp"
#include "librepdl/librepdl.hpp"
#include "tests/interface/loaded_backend.hpp"

namespace {

using namespace repdl;

std::string library(const std::string& name) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (here / REPDL_LIBDIR_FROM_BINDIR / ("lib" + name + ".so")).lexically_normal();
}

const loaded::backend_table& table() {
  static const loaded::backend_table& t = loaded::load(library("repdl_loaded_test"));
  return t;
}

// A context of the CPU whose executor is the library's.
context loaded_context(context_options o) {
  context ctx(o);
  context_access::of(ctx).executor = loaded::open(table(), o);
  return ctx;
}

// Site, type and message of what f throws.
struct caught {
  error_site site;
  const std::type_info* type;
  std::string op, argument, message;
  friend bool operator==(const caught&, const caught&) = default;
};
caught catch_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return {e.site(), &typeid(e), e.op(), e.argument(), e.what()};
  }
  FAIL("no error");
  return {};
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("loaded: every operation has its bits" * doctest::test_suite("portable values")) {
  context ctx = loaded_context({.threads = 2});
  CHECK(context_access::of(ctx).executor->isa() == ctx.isa());
  CHECK(context_access::of(ctx).executor->threads() == 2);
  for (const dispatch::subject& what :
       dispatch::kernel_test_subjects()) {  // plans cross the boundary: any call will do
    CAPTURE(what.name());
    CHECK(dispatch::run_kernel_test_group(ctx, what, 0) == "");
  }
}

TEST_CASE("loaded: statistics, prepared calls, an optimiser's long list") {
  std::vector<context> both;
  both.emplace_back(context_options{.threads = 1});
  both.push_back(loaded_context({.threads = 1}));
  std::vector<float> x(1000), sums(both.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (i % 2 == 0 ? 1.0f : -1.0f) / static_cast<float>(i / 2 + 1);
  std::vector<statistics> counts;
  std::vector<std::vector<float>> weights(both.size(), x);
  for (std::size_t b = 0; b < both.size(); ++b) {
    context& ctx = both[b];
    sum(ctx, x, tensor_view(&sums[b], {}));
    ctx.reset_statistics();
    std::vector<float> y(x.size());
    prepared_calls calls = ctx.prepare([&] {
      softmax(ctx, x, y);
      sum(ctx, y, tensor_view(&sums[b], {}));
    });
    for (int i = 0; i < 3; ++i) calls.run();
    // A plan that owns memory: more tensors than one.
    std::vector<const_tensor_view> in;
    std::vector<tensor_view> out;
    for (std::int64_t i = 0; i < 5; ++i) {
      in.emplace_back(weights[b].data() + i * 200, sizes{200});
      in.emplace_back(x.data(), sizes{200});
      out.emplace_back(weights[b].data() + i * 200, sizes{200});
    }
    call(ctx, *find("sgd"), in, out, {{"lr", 0.5}});
    counts.push_back(ctx.read_statistics());
  }
  CHECK(sums[0] == sums[1]);
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] != x);
  std::int64_t all = 0;
  for (int t = 0; t < 4; ++t) {
    CHECK(counts[0].elements[t] == counts[1].elements[t]);
    all += counts[0].elements[t];
  }
  CHECK(all == 3 * 1001 + 1000);
}

TEST_CASE("loaded: every error crosses") {
  const auto e = loaded::open(table(), {});
  for (int i = 0; i < error_site_count(); ++i) {
    CAPTURE(i);
    const caught direct = catch_error([&] {
      fail(static_cast<error_site>(i), tests::fault_op, tests::fault_argument, tests::fault_expected, tests::fault_got);
    });
    CHECK((catch_error([&] { e->copy(nullptr, nullptr, static_cast<std::size_t>(i)); }) == direct));
  }
  CHECK_THROWS_AS(e->copy(nullptr, nullptr, tests::no_memory), std::bad_alloc);
  CHECK_THROWS_WITH_AS(e->copy(nullptr, nullptr, tests::standard_exception), tests::fault_got, std::runtime_error);
  CHECK_THROWS_WITH_AS(e->copy(nullptr, nullptr, tests::unknown_exception), "an exception of unknown type",
                       std::runtime_error);
  // From a run, from opening, and from the allocator.
  context direct({.threads = 1, .last_tier_bits = 0}), across = loaded_context({.threads = 1, .last_tier_bits = 0});
  const std::vector<float> x{0.5f, 0.25f, 3.0f};
  std::vector<float> y(3);
  for (context* ctx : {&direct, &across}) context_access::of(*ctx).options.first_tier = tier::exact;
  const auto undecided = [&](context& ctx) { return catch_error([&] { softmax(ctx, x, y); }); };
  CHECK(undecided(direct).site == error_site::undecided);
  CHECK((undecided(across) == undecided(direct)));
  CHECK(
      (catch_error([&] { loaded::open(table(), {.isa = "none"}); }) == catch_error([] { context({.isa = "none"}); })));
  const auto memory = loaded::make_allocator(table());
  void* const data = memory->allocate(1000, {}, nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % 256 == 0);
  memory->deallocate(data, 1000, {}, nullptr);
}

TEST_CASE("loaded: devices, and kernel tests that the library runs") {
  std::string why;
  const std::vector<device_info> devices = loaded::devices(table(), &why);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].where == device{device_kind::cuda, 3});
  CHECK(devices[0].name == tests::device_name);
  CHECK(why == tests::why_none);

  const dispatch::kernel_report report = loaded::open(table(), {})->test_kernels();
  const std::vector<dispatch::subject> subjects = dispatch::kernel_test_subjects();
  REQUIRE(report.lines.size() == subjects.size());
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    CHECK(report.lines[i].what == subjects[i]);
    CHECK(report.lines[i].groups == static_cast<int>(dispatch::kernel_test_groups(subjects[i])));
  }
  // No difference, and the library's own error.
  const caught none = catch_error([] { dispatch::kernel_test_context(device{device_kind::cuda, 1000}, nullptr); });
  REQUIRE(report.unreached.size() == 1);
  CHECK(report.unreached[0] == none.message);
  CHECK(report.kernels == static_cast<int>(none.site));
}

TEST_CASE("loaded: other libraries are refused") {
  const auto refused = [](const std::string& file, const std::string& words) {
    const caught e = catch_error([&] { loaded::load(file); });
    CHECK(e.site == error_site::cuda_library);
    CHECK(e.argument == file);
    CAPTURE(e.message);
    CHECK(e.message.find(words) != std::string::npos);
  };
  refused(library("repdl_other_build"),
          "expected build " + std::string(loaded::build_id()) + ", got build 0.0.0-another");
  refused(library("not_there"), "cannot open shared object file");
  refused(library("repdl_other_build") + "/none", "expected a shared library that can be loaded, got ");
  const std::string version(repdl::version());
  CHECK(std::string(loaded::build_id()).find(version + "-") == 0);
}

}  // namespace

TEST_SUITE_END();
