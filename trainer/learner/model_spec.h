#pragma once

#include <string>
#include <vector>

#include "trainer/learner/dataset_spec.h"
#include "trainer/learner/layers.h"
#include "trainer/learner/train_spec.h"

// The contents of a model file as a value: no YAML, no torch.
namespace pliant::learner {

struct ModelSpec {
  std::string name;
  Shape input;
  std::vector<Layer> layers;
  TrainSpec train;
  DatasetSpec data;
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace pliant::learner
