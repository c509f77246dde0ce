#include "operator/api/name_space.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace pliant::api {

Result<Namespace> DecodeNamespace(const nlohmann::json& object) {
  Namespace space;
  ASSIGN_OR_RETURN(space.meta, DecodeMeta(object, /*label_prefix=*/""));
  Fields root(object);
  root.Object("status",
              [&](Fields& status) { space.deleting = status.String("phase") == "Terminating"; });
  if (root.error()) return std::unexpected(*root.error());
  space.deleting = space.deleting || space.meta.deleted.has_value();
  return space;
}

}  // namespace pliant::api
