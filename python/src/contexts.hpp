// The contexts of a Python program: one for each thread and device by default, and those that it makes itself.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/context.hpp"
#include "python.hpp"

namespace repdl::python {

// librepdl.Context. Threads may share one; they take turns. On CUDA it has a repdl::context for each stream that it was
// used on.
class shared_context : public std::enable_shared_from_this<shared_context> {
 public:
  explicit shared_context(context_options options) : options_(std::move(options)) {}

  const device& where() const { return options_.where; }
  // Of a stream of the device; makes it. The mutex is held.
  context& on(void* stream);
  // The first one, or one on the default stream.
  context& any() { return contexts_.empty() ? on(nullptr) : *contexts_.front().second; }
  void close();
  // Memory that `on(stream)` allocated, from any thread, with or without the interpreter's lock.
  void give_back(void* data, std::size_t bytes, void* stream);
  statistics read_statistics();
  void reset_statistics();
  void synchronize();

  std::recursive_mutex mutex;

 private:
  context_options options_;
  std::vector<std::pair<void*, std::unique_ptr<context>>> contexts_;
  bool closed_ = false;

  struct memory {
    void* data;
    std::size_t bytes;
    void* stream;
  };
  void free_all_given_back();
  std::mutex given_back_mutex_;
  std::vector<memory> given_back_;
};

// The innermost context of this thread (with librepdl.context(...)) that is on the device, or the thread's own.
const std::shared_ptr<shared_context>& current_context(const device& where);
void enter_context(std::shared_ptr<shared_context> c);
void leave_context(const shared_context& c);

// "cpu", "cuda", "cuda:1"; throws ValueError.
device device_named(std::string_view text);

// The context to oneself, and the interpreter too: for what calls Python.
class hold {
 public:
  explicit hold(shared_context& c) : context_(c) {
    if (context_.mutex.try_lock()) return;
    const nb::gil_scoped_release others_go_on;
    context_.mutex.lock();
  }
  ~hold() { context_.mutex.unlock(); }
  hold(const hold&) = delete;
  hold& operator=(const hold&) = delete;

 private:
  shared_context& context_;
};

// The context to oneself, while other Python threads go on. `briefly`: they need not, if nobody else has it.
class turn {
 public:
  turn(shared_context& c, bool briefly) : context_(c) {
    if (briefly && context_.mutex.try_lock()) return;
    released_ = PyEval_SaveThread();
    context_.mutex.lock();
  }
  ~turn() {
    context_.mutex.unlock();
    if (released_ != nullptr) PyEval_RestoreThread(released_);
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

 private:
  shared_context& context_;
  PyThreadState* released_ = nullptr;
};

}  // namespace repdl::python
