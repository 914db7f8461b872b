#include "op/backend.h"

#include <map>

namespace dnl {
namespace {

std::map<std::string, Backend*>& backends() {
  static std::map<std::string, Backend*> all;
  return all;
}

}  // namespace

RegisterBackend::RegisterBackend(const char* name, Backend* backend) { backends()[name] = backend; }

Backend* backend_by_name(const std::string& name) {
  auto it = backends().find(name);
  if (it != backends().end()) return it->second;
  std::string names;
  for (auto& b : backends()) names += (names.empty() ? "" : ", ") + b.first;
  fail_value("[backend] no backend '" + name + "'; this build has " + names);
}

Backend& host_backend() {
  static Backend* cpu = backend_by_name("cpu");
  return *cpu;
}

}  // namespace dnl
