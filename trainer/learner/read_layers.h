#pragma once

#include <vector>

#include "trainer/learner/layers.h"
#include "trainer/learner/yaml_fields.h"

namespace pliant::learner {

// Reads a list of layers, as under `layers` in a model file. Throws Wrong.
std::vector<Layer> ReadLayers(const YAML::Node& node);

// The node of the layer that an error of InferShapes names.
YAML::Node NodeAt(const YAML::Node& layers, const std::vector<std::size_t>& place);

}  // namespace pliant::learner
