#include "backends/cuda/gpus.h"

#include <cstdlib>
#include <mutex>

#include "backends/cuda/device.h"

namespace dnl::cuda {
namespace {

constexpr int kLeastVersion = 12000;  // of the driver: it loads what any compiler of CUDA 12 makes
constexpr int kLeastMajor = 7;
constexpr int kMajorAttribute = 75, kMinorAttribute = 76;

std::mutex g_lock;
Choice g_choice;
int g_in_use = -1;

// The driver, started; or null and why not.
const Driver* started(std::string* why) {
  const Driver* d = find_driver(why);
  if (!d) return nullptr;
  int version = 0;
  try {
    check(*d, d->driver_version(&version), "asking for the driver's version");
    if (version < kLeastVersion) {
      *why = "the NVIDIA driver is too old: it knows CUDA " + std::to_string(version / 1000) + "." +
             std::to_string(version % 1000 / 10) + ", and 12.0 is needed";
      return nullptr;
    }
    check(*d, d->init(0), "starting the NVIDIA driver");
  } catch (const Error& error) {
    *why = error.what();
    if (why->rfind("[cuda] ", 0) == 0) why->erase(0, 7);
    return nullptr;
  }
  return d;
}

DeviceInfo ask(const Driver& d, int number) {
  DeviceInfo info;
  info.number = number;
  try {
    int device = 0;
    char name[256] = {};
    std::size_t bytes = 0;
    check(d, d.device_get(&device, number), "opening the GPU");
    check(d, d.device_name(name, sizeof name - 1, device), "asking for the GPU's name");
    check(d, d.device_total_memory(&bytes, device), "asking for the GPU's memory");
    check(d, d.device_attribute(&info.major, kMajorAttribute, device), "asking for the compute capability");
    check(d, d.device_attribute(&info.minor, kMinorAttribute, device), "asking for the compute capability");
    info.model = name;
    info.memory = bytes;
    if (info.major < kLeastMajor)
      info.problem =
          "compute capability " + std::to_string(info.major) + "." + std::to_string(info.minor) + ", and 7.0 is needed";
  } catch (const Error& error) { info.problem = error.what(); }
  return info;
}

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

class Gpus final : public Devices {
 public:
  const char* backend() const override { return "cuda"; }
  std::string problem() override {
    std::string why;
    const Driver* d = started(&why);
    if (!d) return why;
    return count(*d) > 0 ? "" : "the NVIDIA driver finds no GPU";
  }
  std::vector<DeviceInfo> list() override {
    std::vector<DeviceInfo> out;
    std::string why;
    const Driver* d = started(&why);
    for (int n = 0; d && n < count(*d); ++n) out.push_back(ask(*d, n));
    return out;
  }
  void choose(int number, const std::string& image, const std::string& products) override {
    const std::lock_guard<std::mutex> lock(g_lock);
    if (g_in_use >= 0 && g_in_use != number)
      fail(ErrorKind::Runtime, "[cuda] this process uses GPU " + std::to_string(g_in_use) +
                                   " already, and a process uses one GPU; got GPU " + std::to_string(number));
    g_choice = {number, image, products};
  }
  int in_use() const override {
    const std::lock_guard<std::mutex> lock(g_lock);
    return g_in_use;
  }
  double busy(bool watched) override {
    device_clock().watched = watched;
    return device_clock().seconds;
  }
  bool brings_code() const override { return set("DYNET_LITE_LIBCUDA") && !set("DYNET_LITE_CUDA_IMAGE"); }

 private:
  static int count(const Driver& d) {
    int n = 0;
    return d.device_count(&n) == 0 ? n : 0;
  }
};

Gpus gpus;
const RegisterDevices registered(&gpus);

}  // namespace

Choice take_choice() {
  std::string why;
  if (!started(&why)) fail(ErrorKind::Runtime, "[cuda] " + why);
  const std::lock_guard<std::mutex> lock(g_lock);
  if (g_choice.image.empty() && !gpus.brings_code())
    fail(ErrorKind::Runtime, "[cuda] there are no kernels for this GPU; dy.devices() tells what is missing");
  g_in_use = g_choice.number;
  return g_choice;
}

void gave_up_choice() {
  const std::lock_guard<std::mutex> lock(g_lock);
  g_in_use = -1;
}

}  // namespace dnl::cuda
