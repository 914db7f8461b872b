#include "op/update.h"

namespace dnl {
namespace {

const UpdateRule kRules[] = {
    {"sgd", Rule::Sgd, 0, true},          {"momentum", Rule::Momentum, 1, false},
    {"adagrad", Rule::Adagrad, 1, true},  {"adadelta", Rule::Adadelta, 2, false},
    {"rmsprop", Rule::RmsProp, 1, false}, {"adam", Rule::Adam, 2, false},
    {"amsgrad", Rule::Amsgrad, 3, false}, {"eg", Rule::Eg, 1, false, true},
};

}  // namespace

const UpdateRule& update_rule(const std::string& name) {
  for (const UpdateRule& r : kRules)
    if (name == r.name) return r;
  fail_value("[trainer] there is no update rule '" + name + "'");
}

}  // namespace dnl
