#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>

#include "base/check.h"
#include "base/hex.h"
#include "trainer/checkpoint/checkpoint.h"

namespace pliant {

std::string ParametersSha256(const StateDict& state) {
  std::vector<const TensorView*> model;
  for (const TensorView& tensor : state)
    if (tensor.name.starts_with(kModelPrefix)) model.push_back(&tensor);
  std::ranges::sort(model, {}, [](const TensorView* tensor) { return tensor->name; });

  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  CHECK(hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1,
        "SHA-256 is there");
  const auto update = [&](const void* data, std::size_t size) {
    CHECK(EVP_DigestUpdate(hash.get(), data, size) == 1, "hashing does not fail");
  };
  const auto update_text = [&](std::string_view text) {
    update(text.data(), text.size());
    update("", 1);  // NUL
  };
  for (const TensorView* tensor : model) {
    update_text(std::string_view(tensor->name).substr(kModelPrefix.size()));
    update_text(ToString(tensor->dtype));
    update_text(ShapeText(tensor->shape));
    update(tensor->bytes.data(), tensor->bytes.size());
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(hash.get(), digest.data(), &size) == 1, "hashing does not fail");
  return Hex(std::as_bytes(std::span(digest).first(size)));
}

}  // namespace pliant
