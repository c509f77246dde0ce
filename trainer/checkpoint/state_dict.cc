#include "trainer/checkpoint/state_dict.h"

#include "base/check.h"

namespace pliant {

std::string_view ToString(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kFloat64:
      return "F64";
    case DType::kFloat16:
      return "F16";
    case DType::kBFloat16:
      return "BF16";
    case DType::kInt64:
      return "I64";
    case DType::kInt32:
      return "I32";
    case DType::kUInt8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  CheckFailed("dtype", "one of the enumerators", __FILE__, __LINE__);
}

std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUInt8:
    case DType::kBool:
      return 1;
  }
  CheckFailed("dtype", "one of the enumerators", __FILE__, __LINE__);
}

}  // namespace pliant
