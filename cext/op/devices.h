// What a backend could run on besides the processor: the GPUs that are there, and which of them to use.
//
// A backend for devices registers one of these (RegisterDevices); whoever chooses a device asks here and never includes
// the backend. Nothing is opened and no library is loaded before the first question.
// Who may include: backends/, bindings/. Includes: base/.
#pragma once
#include <string>
#include <vector>

#include "base/vec.h"

namespace dnl {

struct DeviceInfo {
  int number = 0;  // from 0, as the driver counts
  std::string model;
  u64 memory = 0;            // bytes
  int major = 0, minor = 0;  // compute capability
  std::string problem;       // why it cannot be used; empty: nothing is known against it
};

class Devices {
 public:
  virtual ~Devices() = default;
  virtual const char* backend() const = 0;
  // Why there are none: no driver, or one that is too old. Empty: list() tells.
  virtual std::string problem() = 0;
  virtual std::vector<DeviceInfo> list() = 0;
  // Which device the backend opens when it is first used, its code, and the file of a library for large matrix
  // products, which may be empty. Throws Error(Runtime) when it runs on another already: a process uses one.
  virtual void choose(int number, const std::string& image, const std::string& products) = 0;
  // That it runs on, or -1.
  virtual int in_use() const = 0;
  // Seconds that the device has been at work while it was watched, on what the host has waited for; and whether it is
  // watched from now on.
  virtual double busy(bool watched) = 0;
  // Whether device code comes with the driver, as that of a stand-in does.
  virtual bool brings_code() const = 0;
};

// Registration by static object.
struct RegisterDevices {
  explicit RegisterDevices(Devices* devices);
};
// Those of a backend; null when it has none.
Devices* devices_of(const std::string& backend);

}  // namespace dnl
