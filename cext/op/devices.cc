#include "op/devices.h"

namespace dnl {
namespace {

std::vector<Devices*>& all() {
  static std::vector<Devices*> devices;
  return devices;
}

}  // namespace

RegisterDevices::RegisterDevices(Devices* devices) { all().push_back(devices); }

Devices* devices_of(const std::string& backend) {
  for (Devices* d : all())
    if (d->backend() == backend) return d;
  return nullptr;
}

}  // namespace dnl
