#include "exec/rewound.h"

#include <utility>

namespace dnl {

template <class F>
bool Rewound::each(F f) const {
  bool any = false;
  for (u32 k = 0; k < g_.parameters(); ++k) {
    Parameter& p = *g_.parameter(g_.parameter_node(k));
    if (!p.before.empty()) any |= f(p.before, p.value, p.size());
  }
  for (u32 k = 0; k < g_.tables(); ++k) {
    LookupTable& t = *g_.table(k);
    if (!t.before.empty()) any |= f(t.before, t.value, t.row_size);
  }
  return any;
}

void Rewound::check(Moment ran_at) const {
  if (ran_at >= at_) return;
  if (each([&](Versions& v, Store&, std::size_t) { return v.lost(owner_, ran_at); }))
    fail(ErrorKind::Runtime,
         "[backward] goes through nodes that ran so many updates ago that the weights of then are not kept any more; "
         "empty the graph from time to time with renew_cg()");
}

bool Rewound::to(Moment ran_at) {
  if (ran_at == at_) return false;
  bool any = ran_at > at_ && present();
  const bool before = std::exchange(rewound_, true);  // what fails halfway goes back, too
  const bool exchanged = each([&](Versions& v, Store& numbers, std::size_t row) {
    return v.exchange(backend_, owner_, ran_at, numbers.write(backend_), row);
  });
  any |= exchanged;
  rewound_ = before || exchanged;
  at_ = ran_at;
  return any;
}

bool Rewound::present() {
  if (!rewound_) return false;
  rewound_ = false;
  at_ = now();
  each([&](Versions& v, Store& numbers, std::size_t row) { return v.present(backend_, numbers.write(backend_), row); });
  return true;
}

}  // namespace dnl
