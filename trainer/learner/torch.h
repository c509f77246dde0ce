#pragma once

// The parts of torch that the learner uses. They define a CHECK macro in the style of glog; here
// CHECK is ours.
// clang-format off
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/api/include/torch/version.h>
#undef CHECK
#include "base/check.h"
// clang-format on
