#include "backends/loaded/loaded_backend.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "librepdl/dispatch/kernel_tests.hpp"

// The directory of librepdl_cuda.so in a build of which librepdl is a part: defined in an object that such a build adds
// to its programs (backends/CMakeLists.txt), null elsewhere.
extern "C" [[gnu::weak]] const char repdl_cuda_build_directory[];

namespace repdl::loaded {
namespace {

// ------------------------------------------------------------------------------------------------ the library's table

constexpr library_table library{
    .test_subjects =
        [](asker<std::vector<dispatch::subject>>& to) noexcept {
          contain(to, [&] { to.answer(dispatch::kernel_test_subjects()); });
        },
    .test_context =
        [](const device& where, void* stream, caller& to) noexcept {
          context* made = nullptr;
          contain(to, [&] { made = &dispatch::kernel_test_context(where, stream); });
          return made;
        },
    .test_groups =
        [](const dispatch::subject& what, caller& to) noexcept {
          std::size_t groups = 0;
          contain(to, [&] { groups = dispatch::kernel_test_groups(what); });
          return groups;
        },
    .plan_test =
        [](context& tested, const dispatch::subject& what, std::size_t group, caller& to) noexcept {
          contain(to, [&] { dispatch::plan_kernel_test_group(tested, what, group); });
        },
    .run_test =
        [](context& tested, const dispatch::subject& what, std::size_t group, asker<std::string>& to) noexcept {
          contain(to, [&] { to.answer(dispatch::run_kernel_test_group(tested, what, group)); });
        }};

// --------------------------------------------------------------------------------------------- the backend's parts

// A work of the other side, in memory of this one.
class loaded_work final : public dispatch::work {
 public:
  static constexpr std::size_t most_bytes = sizeof(dispatch::task_memory);

  // prepare(memory, bytes, caller) makes it.
  template <class Prepare>
  loaded_work(const backend_table& t, Prepare&& prepare) : table_(t) {
    cross([&](caller& c) { work_ = prepare(memory_.data, bytes_, c); });
  }
  ~loaded_work() override { table_.destroy(*work_); }

  plan::checked_size bytes() const override { return bytes_; }
  void run(void* workspace) override {
    cross([&](caller& c) { table_.run(*work_, workspace, c); });
  }

 private:
  const backend_table& table_;
  dispatch::work* work_ = nullptr;
  plan::checked_size bytes_;
  dispatch::work_memory<work::most_bytes> memory_;
};

class loaded_executor final : public dispatch::executor {
 public:
  loaded_executor(const backend_table& t, const context_options& o)
      : table_(t),
        executor_(nullptr, t.close),
        facts_(ask<executor_facts>([&](auto& c) { executor_.reset(t.open(o, c)); })) {}

  const std::string& isa() const noexcept override { return facts_.isa; }
  int threads() const noexcept override { return facts_.threads; }

#define REPDL_PREPARE(family)                                                                              \
  void prepare(const plan::family##_plan& p, const dispatch::launch& l, dispatch::task& t) override {      \
    t.emplace<loaded_work>(table_, [&](std::byte* memory, plan::checked_size& bytes, caller& c) noexcept { \
      return table_.prepare_##family(*executor_, p, l, memory, bytes, c);                                  \
    });                                                                                                    \
  }
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE

  void synchronize() override {
    cross([&](caller& c) { table_.synchronize(*executor_, c); });
  }
  statistics read_statistics() override {
    return ask<statistics>([&](auto& c) { table_.read_statistics(*executor_, c); });
  }
  void reset_statistics() override {
    cross([&](caller& c) { table_.reset_statistics(*executor_, c); });
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    cross([&](caller& c) { table_.copy(*executor_, to, from, bytes, c); });
  }
  dispatch::kernel_report test_kernels() override {
    return ask<dispatch::kernel_report>([&](auto& c) { table_.test_kernels(*executor_, c); });
  }

 private:
  const backend_table& table_;
  std::unique_ptr<dispatch::executor, void (*)(dispatch::executor*) noexcept> executor_;
  const executor_facts facts_;
};

class loaded_allocator final : public allocator {
 public:
  explicit loaded_allocator(const backend_table& t) : table_(t) {}
  void* allocate(std::size_t bytes, const device& where, void* stream) override {
    void* data = nullptr;
    cross([&](caller& c) { data = table_.allocate(bytes, where, stream, c); });
    return data;
  }
  void deallocate(void* data, std::size_t bytes, const device& where, void* stream) noexcept override {
    table_.deallocate(data, bytes, where, stream);
  }

 private:
  const backend_table& table_;
};

}  // namespace

const backend_table& load(const std::string& file) {
  const auto refuse = [&](std::string_view expected, std::string_view got) {
    fail(error_site::cuda_library, "context", file, expected, got);
  };
  // Never closed: works, executors and CUDA itself have addresses in it.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) refuse("a shared library that can be loaded", dlerror());
  const auto enter = reinterpret_cast<entry>(dlsym(handle, entry_name));
  if (enter == nullptr) refuse("the symbol " + std::string(entry_name), "a library without it");
  const backend_table* const table = enter(&library);
  if (std::strcmp(table->build, build_id()) != 0) {
    refuse("build " + std::string(build_id()), "build " + std::string(table->build));
  }
  return *table;
}

std::vector<device_info> devices(const backend_table& t, std::string* why_none) {
  device_list list = ask<device_list>([&](auto& c) { t.devices(c); });
  if (why_none != nullptr) *why_none = std::move(list.why_none);
  return std::move(list.devices);
}
std::unique_ptr<dispatch::executor> open(const backend_table& t, const context_options& o) {
  return std::make_unique<loaded_executor>(t, o);
}
std::unique_ptr<allocator> make_allocator(const backend_table& t) { return std::make_unique<loaded_allocator>(t); }

// ----------------------------------------------------------------------------------------------- librepdl_cuda.so
namespace {

namespace fs = std::filesystem;

constexpr const char* cuda_library = "librepdl_cuda.so";
constexpr const char* cuda_variable = "REPDL_CUDA_LIBRARY";

// Where librepdl_cuda.so may be, in this order.
std::vector<fs::path> directories() {
  std::vector<fs::path> all;
  // Beside the file that has this function in it: librepdl.so, or a program; then also where one that is installed beside
  // librepdl would have it.
  Dl_info unused{};
  void* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&build_id), &unused, &map, RTLD_DL_LINKMAP) != 0) {
    const fs::path holder = static_cast<const link_map*>(map)->l_name;
    std::error_code none;
    if (holder.empty()) {
      all.push_back(fs::read_symlink("/proc/self/exe", none).parent_path());
      all.push_back((all.back() / REPDL_LIBDIR_FROM_BINDIR).lexically_normal());
    } else {
      all.push_back(holder.parent_path());
    }
  }
  all.emplace_back(REPDL_LIBDIR);
  if (repdl_cuda_build_directory != nullptr) all.emplace_back(repdl_cuda_build_directory);
  std::erase_if(all, [](const fs::path& p) { return !p.is_absolute(); });
  return all;
}

const backend_table& find_cuda() {
  // A program that runs with more rights than its caller does not take the caller's word.
  if (const char* const file = secure_getenv(cuda_variable); file != nullptr && *file != 0) {
    if (*file != '/') {
      fail(error_site::cuda_library, "context", cuda_variable, "an absolute path", "'" + std::string(file) + "'");
    }
    return load(file);
  }
  std::string searched;
  for (const fs::path& directory : directories()) {
    const fs::path file = directory / cuda_library;
    std::error_code none;
    if (fs::exists(file, none)) return load(file);
    if (searched.find(directory) == std::string::npos) searched += (searched.empty() ? "" : ", ") + directory.string();
  }
  fail(error_site::no_device, "context", cuda_library, "a file in " + searched, "none");
}

// Found once; what keeps it away now keeps it away later.
const backend_table& cuda() {
  struct search {
    const backend_table* table = nullptr;
    std::exception_ptr failed;
    search() {
      try {
        table = &find_cuda();
      } catch (const error&) {
        failed = std::current_exception();
      }
    }
  };
  static const search& once = *new search;  // never destroyed: contexts in static storage may ask late
  if (once.failed) std::rethrow_exception(once.failed);
  return *once.table;
}

}  // namespace

dispatch::backend cuda_backend() noexcept {
  return {device_kind::cuda,
          [](std::string* why_none) -> std::vector<device_info> {
            const backend_table* table = nullptr;
            try {
              table = &cuda();
            } catch (const error& e) {
              if (why_none != nullptr) *why_none = e.what() + e.op().size() + 2;
              return {};
            }
            return devices(*table, why_none);
          },
          [](const context_options& o) { return open(cuda(), o); },
          []() -> allocator& {
            static allocator* const instance = make_allocator(cuda()).release();  // never destroyed, likewise
            return *instance;
          }};
}

}  // namespace repdl::loaded
