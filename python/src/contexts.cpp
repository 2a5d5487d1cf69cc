#include "contexts.hpp"

#include <charconv>

#include "array.hpp"

namespace repdl::python {
namespace {

// Without Python objects: a thread may end without the interpreter's lock.
struct of_thread {
  std::vector<std::shared_ptr<shared_context>> entered;  // the innermost last
  std::vector<std::shared_ptr<shared_context>> own;      // one for each device
};
thread_local of_thread here;

}  // namespace

context& shared_context::on(void* stream) {
  if (closed_) throw nb::value_error("context: expected one that is open, got one that was closed");
  free_all_given_back();
  for (auto& [its_stream, made] : contexts_) {
    if (its_stream == stream) return *made;
  }
  context_options options = options_;
  options.stream = stream;
  return *contexts_.emplace_back(stream, std::make_unique<context>(std::move(options))).second;
}

void shared_context::give_back(void* data, std::size_t bytes, void* stream) {
  {
    const std::lock_guard lock(given_back_mutex_);
    given_back_.push_back({data, bytes, stream});
  }
  // Whoever has the context now frees it later: waiting here could be waiting for oneself.
  if (!mutex.try_lock()) return;
  free_all_given_back();
  mutex.unlock();
}

void shared_context::free_all_given_back() {
  const std::lock_guard lock(given_back_mutex_);
  for (const memory& m : given_back_) {
    for (auto& [stream, made] : contexts_) {
      if (stream == m.stream) made->deallocate(m.data, m.bytes);
    }
  }
  given_back_.clear();
}

void shared_context::close() {
  free_all_given_back();
  closed_ = true;
  contexts_.clear();
}

statistics shared_context::read_statistics() {
  statistics sum;
  for (auto& [stream, made] : contexts_) {
    const statistics s = made->read_statistics();
    for (int t = 0; t < 4; ++t) sum.elements[t] += s.elements[t];
  }
  return sum;
}
void shared_context::reset_statistics() {
  for (auto& [stream, made] : contexts_) made->reset_statistics();
}
void shared_context::synchronize() {
  for (auto& [stream, made] : contexts_) made->synchronize();
}

const std::shared_ptr<shared_context>& current_context(const device& where) {
  for (std::size_t i = here.entered.size(); i-- > 0;) {
    if (here.entered[i]->where() == where) return here.entered[i];
  }
  for (const auto& own : here.own) {
    if (own->where() == where) return own;
  }
  return here.own.emplace_back(std::make_shared<shared_context>(context_options{.where = where}));
}

void enter_context(std::shared_ptr<shared_context> c) { here.entered.push_back(std::move(c)); }

void leave_context(const shared_context& c) {
  if (here.entered.empty() || here.entered.back().get() != &c) {
    throw std::runtime_error("context: expected the context that this thread entered last, got another one");
  }
  here.entered.pop_back();
}

device device_named(std::string_view text) {
  if (text == "cpu") return {};
  device d{device_kind::cuda, 0};
  if (text == "cuda") return d;
  if (text.starts_with("cuda:")) {
    const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), d.index);
    if (error == std::errc() && end == text.data() + text.size() && d.index >= 0) return d;
  }
  throw nb::value_error(("device: expected 'cpu', 'cuda' or 'cuda:N', got '" + std::string(text) + "'").c_str());
}

}  // namespace repdl::python
