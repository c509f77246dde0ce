#pragma once

#include <functional>

#include "operator/api/meta.h"
#include "operator/controller/lifecycle/object_event.h"
#include "operator/kube/object.h"

namespace pliant::controller {

// Records an event of an object, and does not wait.
using EventSink = std::function<void(const kube::ResourceType& type, const api::ObjectMeta& object,
                                     const ObjectEvent& event)>;

}  // namespace pliant::controller
