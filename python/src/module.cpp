// librepdl._core.
#include "c_abi.hpp"
#include "call.hpp"
#include "compare.hpp"
#include "composed.hpp"
#ifdef REPDL_WITH_COMMANDS
#include <nanobind/stl/vector.h>

#include "tools/cli/commands.hpp"
#include "tools/cli/data_directory.hpp"
#endif

namespace repdl::python {
namespace {

// In the order of the registry, whose positions call() takes.
nb::list names() {
  nb::list all;
  for (const op_info& op : operations()) all.append(op.name);
  return all;
}

nb::dict info() {
  nb::dict d;
  d["version"] = std::string(version());
  d["bits_version"] = bits_version();
  nb::dict sets;
  for (const isa_info& i : instruction_sets()) sets[i.name.c_str()] = i.available;
  d["instruction_sets"] = sets;
  std::string why;
  nb::dict found;
  for (const device_info& i : devices(&why)) found[name_of(i.where).c_str()] = i.name;
  d["devices"] = found;
  d["no_gpu"] = why.empty() ? nb::object(nb::none()) : nb::object(nb::str(why.c_str()));
  return d;
}

#ifdef REPDL_WITH_COMMANDS
int command_line(const std::vector<std::string>& given, const std::string& data) {
  tools::set_data_directory(data);
  const std::vector<std::string_view> args(given.begin(), given.end());
  const nb::gil_scoped_release others_may_go_on;
  return tools::command_line(args);
}
#endif

// A method that may wait, while other Python threads go on.
auto in_turn(void (shared_context::*method)()) {
  return [method](shared_context& c) {
    const turn t(c, false);
    (c.*method)();
  };
}

std::shared_ptr<shared_context> make_context(int threads, nb::object isa, const std::string& where) {
  context_options o{.where = device_named(where), .threads = threads};
  if (!isa.is_none() && !nb::try_cast(isa, o.isa)) {
    throw nb::type_error(("context: isa: expected a str, got " + name_of_type(isa)).c_str());
  }
  auto c = std::make_shared<shared_context>(std::move(o));
  const turn t(*c, false);
  c->any();  // what is wrong with the options is said here
  return c;
}

nb::dict statistics_of(shared_context& c) {
  statistics s;
  {
    const turn t(c, false);
    s = c.read_statistics();
  }
  nb::dict d;
  d["proved"] = s[tier::proved];
  d["binary64"] = s[tier::binary64];
  d["double_double"] = s[tier::double_double];
  d["exact"] = s[tier::exact];
  return d;
}

std::string fingerprint_of(nb::list objects) {
  std::vector<array> arrays;
  std::vector<const_tensor_view> views;
  const array* on_device = nullptr;
  for (nb::handle o : objects) arrays.emplace_back("fingerprint", "arrays[" + std::to_string(arrays.size()) + "]", o);
  for (const array& a : arrays) {
    views.push_back(a.view());
    if (a.where().kind != device_kind::cpu) on_device = &a;
  }
  const auto& c = current_context(on_device == nullptr ? device{} : on_device->where());
  const turn t(*c, false);
  return fingerprint(c->on(on_device == nullptr ? nullptr : on_device->stream()), views);
}

NB_MODULE(_core, m) {
  import_numpy();
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const error& e) {
      PyErr_SetString(exception_for(e), e.what());
    }
  });
  bind_exporter(m);
  m.def("call", call, nb::arg("index"), nb::arg("inputs"), nb::arg("out").none(), nb::arg("values").none(),
        nb::arg("like") = nb::none(), nb::arg("statistics") = false);
  m.def("call_grouped", call_grouped, nb::arg("index"), nb::arg("lists"), nb::arg("values").none(),
        nb::arg("first_step"));
  m.def("rotary", rotary, nb::arg("inputs"), nb::arg("out").none(), nb::arg("interleaved"), nb::arg("inverse"));
  m.def("attention_varlen", attention_varlen, nb::arg("inputs"), nb::arg("out").none(), nb::arg("values"),
        nb::arg("lse"));
  m.def("attention_varlen_backward", attention_varlen_backward, nb::arg("inputs"), nb::arg("out").none(),
        nb::arg("values"));
  m.def("name_parameters", name_parameters, nb::arg("names"));
  m.def("preparing", [] { return recording::current != nullptr; });
  m.def("names", names);
  m.def("info", info);
  m.def("fingerprint", fingerprint_of);
  m.def("compare", compare);
  m.def("c_abi", c_abi_address);
  m.def("version", [] { return std::string(version()); });
#ifdef REPDL_WITH_COMMANDS
  m.def("command_line", command_line);
#endif

  nb::class_<shared_context>(m, "Context", "Where and how operations run: librepdl.context().")
      .def("__enter__",
           [](std::shared_ptr<shared_context> c) {
             const turn t(*c, true);
             c->any();
             enter_context(c);
             return c;
           })
      .def("__exit__", [](shared_context& c, nb::args) { leave_context(c); })
      .def("close", in_turn(&shared_context::close),
           "Gives its memory back. Calls in a context that was closed raise ValueError.")
      .def(
          "prepare",
          [](std::shared_ptr<shared_context> c, nb::callable f) {
            enter_context(c);
            struct leave {
              shared_context& entered;
              ~leave() { leave_context(entered); }
            } const at_end{*c};
            return std::make_unique<prepared_calls>(c, f);
          },
          nb::arg("f"), "The calls that f() makes, validated and planned, to be run later with Prepared.run().")
      .def("synchronize", in_turn(&shared_context::synchronize),
           "Waits until everything launched has finished, and raises the device's errors.")
      .def("statistics", statistics_of,
           "Output elements decided per tier: {'proved': n, 'binary64': n, 'double_double': n, 'exact': n}.")
      .def("reset_statistics", in_turn(&shared_context::reset_statistics))
      .def_prop_ro("device", [](const shared_context& c) { return name_of(c.where()); })
      .def_prop_ro("isa",
                   [](shared_context& c) {
                     const turn t(c, true);
                     return c.any().isa();
                   })
      .def_prop_ro("threads",
                   [](shared_context& c) {
                     const turn t(c, true);
                     return c.any().threads();
                   })
      .def("__repr__", [](shared_context& c) {
        const turn t(c, true);
        return "<librepdl.Context on " + name_of(c.where()) + ", " + c.any().isa() + ", threads " +
               std::to_string(c.any().threads()) + ">";
      });
  m.def("context", make_context, nb::arg("threads"), nb::arg("isa").none(), nb::arg("device"));
  m.def(
      "current_context", [](const std::string& where) { return current_context(device_named(where)); },
      nb::arg("device"));

  nb::class_<prepared_calls>(m, "Prepared", "Calls that were planned once: Context.prepare().")
      .def("run", &prepared_calls::run, "Runs the calls in their order, on the arrays that they name.")
      .def_ro("result", &prepared_calls::result, "What the function returned: arrays that each run() fills.")
      .def_prop_ro("workspace_bytes", &prepared_calls::workspace_bytes, "The bytes of workspace that run() needs.");
}

}  // namespace
}  // namespace repdl::python
