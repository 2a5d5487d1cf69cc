#include "formulas.hpp"

namespace repdl_torch {

at::ArrayRef<row> policy() {
  static const row rows[] = {
#define REPDL_MAP(types, schema, how) {action::map, types, schema, how, nullptr},
#define REPDL_FORMULA(types, schema, function) {action::formula, types, schema, "", formulas::function},
#define REPDL_PIN(schema, function) {action::pin, FLOATS, schema, "", formulas::function},
#define REPDL_DERIVATIVE(schema, function) {action::derivative, NARROW, schema, "", formulas::function},
#define REPDL_PASS(names) {action::pass, ANY, names, "", nullptr},
#define REPDL_REFUSE(schema, why) {action::refuse, 0, schema, why, nullptr},
#include "policy.def"
  };
  return rows;
}

}  // namespace repdl_torch
