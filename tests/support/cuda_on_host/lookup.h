// How a test's handle finds what the doubles export beside the real libraries' functions.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

namespace cuda_on_host {

// A function of a double by its name; null where the double was not loaded. With CUDA_ON_HOST_UNSEEN in
// the environment it is null, too: a program then runs on the doubles as it would on a GPU, in one order,
// and a test that needs the handle and does not ask for it shows.
template <class Function>
Function* find_in_double(const char* name) {
  static const bool unseen = std::getenv("CUDA_ON_HOST_UNSEEN") != nullptr;
  return unseen ? nullptr : reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace cuda_on_host
