// Calls by position in the registry: what every function of the package is made of.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "contexts.hpp"
#include "librepdl/dynamic.hpp"
#include "python.hpp"

namespace repdl::python {

// Types of what came are TypeError, the rest by the kind of failure.
PyObject* exception_for(const error& e);

// What errors call attributes whose parameters have other names than in the registry: {"keepdim": "keepdims", "linspace.end": "stop"},
// of any operation or of one.
void name_parameters(nb::dict names);

// in: arrays, numbers where the operation is elementwise, None where an operand is optional. values: of the attributes in
// their order, None for an absent one; or None. A result without operands is of the kind of out, like, or NumPy. statistics:
// whether outputs that may be absent are wanted; the result and out are then tuples of all.
nb::object call(int index, nb::tuple in, nb::handle out, nb::handle values, nb::handle like, nb::handle statistics);

// An operation on groups of tensors, updated in place: a list for each operand. first_step: the optional state is written
// and not read. Returns the output that comes once, or None.
nb::object call_grouped(int index, nb::tuple lists, nb::handle values, nb::handle first_step);

// The attributes that are given and not the default; values: as above.
attributes attributes_of(const op_info& op, nb::handle values);

// f in the context for arrays like this one, as every call runs: in its turn, on its library's stream and in memory that it lends, Ctrl-C ends
// it, or it is prepared. in, out: what it reads and writes, to tell how long it may take.
void run(const std::string& op, const array& like, std::span<const const_tensor_view> in,
         std::span<const tensor_view> out, const std::function<void(context&)>& f);

// While this thread prepares calls: their context, and the arrays that they name.
struct recording {
  shared_context& context;
  void* stream;  // of what is prepared
  std::vector<array> arrays{};
  static thread_local recording* current;
};

// librepdl.Prepared.
class prepared_calls {
 public:
  // Calls f.
  prepared_calls(std::shared_ptr<shared_context> c, nb::callable f);
  void run();
  std::size_t workspace_bytes() const { return calls_->workspace_bytes(); }
  nb::object result;  // of f

 private:
  std::shared_ptr<shared_context> context_;
  void* stream_;
  std::vector<array> arrays_;
  std::unique_ptr<repdl::prepared_calls> calls_;
  bool long_ = false;
  scratch workspace_;  // nobody else's: graphs and other streams may be using theirs
};

}  // namespace repdl::python
