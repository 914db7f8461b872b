// What most files read of the standard library. Builds without optimization compile it once and include it from
// the command line: setup.py, the checks of passes. Who may include: no file.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
