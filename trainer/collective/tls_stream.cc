#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <format>
#include <system_error>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/check.h"
#include "trainer/collective/peer_stream.h"

namespace pliant {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::string_view kTlsKeyInfo = "pliant peer transport, TLS 1.3 pre-shared key, version 1";
constexpr std::string_view kIdentity = "pliant-learner";
constexpr std::array<unsigned char, 2> kAes128GcmSha256 = {0x13, 0x01};

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Several records per system call, in each direction.
constexpr std::size_t kSendBufferBytes = std::size_t{256} << 10;
constexpr std::size_t kReceiveBufferBytes = std::size_t{256} << 10;

using Key = std::array<unsigned char, kKeyBytes>;

std::string OpenSslError() {
  std::array<char, 256> text{};
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "TLS failed";
  ERR_error_string_n(error, text.data(), text.size());
  return text.data();
}

// HKDF (RFC 5869) with SHA-256, the hash of the cipher suite.
Result<Key> DeriveKey(std::string_view peer_key) {
  Key key{};
  std::size_t size = key.size();
  EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr);
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const bool derived = context != nullptr && EVP_PKEY_derive_init(context) == 1 &&
                       EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
                       EVP_PKEY_CTX_set1_hkdf_key(context, bytes(peer_key),
                                                  static_cast<int>(peer_key.size())) == 1 &&
                       EVP_PKEY_CTX_add1_hkdf_info(context, bytes(kTlsKeyInfo),
                                                   static_cast<int>(kTlsKeyInfo.size())) == 1 &&
                       EVP_PKEY_derive(context, key.data(), &size) == 1;
  EVP_PKEY_CTX_free(context);
  if (!derived) return Fail(ErrorCode::kInternal, "derive the peers' key: " + OpenSslError());
  return key;
}

SSL_SESSION* NewPskSession(SSL* ssl) {
  const auto* const key = static_cast<const Key*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256.data());
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, key->data(), key->size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int UsePsk(SSL* ssl, const EVP_MD* hash, const unsigned char** identity, std::size_t* size,
           SSL_SESSION** session) {
  *session = nullptr;
  // After a HelloRetryRequest the hash is fixed; ours is the only one on offer.
  if (hash != nullptr && EVP_MD_get_type(hash) != NID_sha256) return 1;
  *session = NewPskSession(ssl);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

int FindPsk(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(identity), size) == kIdentity)
    *session = NewPskSession(ssl);
  return 1;  // without a session the handshake fails: there are no certificates
}

using SslContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Result<SslContext> NewContext(const SSL_METHOD* method, Key* key) {
  SslContext context(SSL_CTX_new(method), &SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") != 1)
    return Fail(ErrorCode::kInternal, "TLS context: " + OpenSslError());
  SSL_CTX_set_app_data(context.get(), key);
  SSL_CTX_set_psk_use_session_callback(context.get(), &UsePsk);
  SSL_CTX_set_psk_find_session_callback(context.get(), &FindPsk);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kReceiveBufferBytes);
  return context;
}

// The socket as OpenSSL sees it. Records are collected in a buffer until Flush: one system call
// then sends many, and writing to a closed socket raises no signal.
class SocketBuffer {
 public:
  explicit SocketBuffer(int socket) : socket_(socket) { pending_.reserve(kSendBufferBytes); }

  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* const made =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "peer socket");
      CHECK(made != nullptr, "memory for a BIO method");
      BIO_meth_set_write(made, [](BIO* bio, const char* data, int size) {
        return Of(bio)->Write(bio, data, static_cast<std::size_t>(size));
      });
      BIO_meth_set_read(made, [](BIO* bio, char* data, int size) {
        return Of(bio)->Read(bio, data, static_cast<std::size_t>(size));
      });
      BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
        return command == BIO_CTRL_FLUSH ? 1 : 0;
      });
      return made;
    }();
    return method;
  }

  IoResult Flush() {
    while (sent_ < pending_.size()) {
      const ssize_t sent =
          ::send(socket_, pending_.data() + sent_, pending_.size() - sent_, MSG_NOSIGNAL);
      if (sent >= 0) {
        sent_ += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return {.state = IoState::kWantWrite};
      } else if (errno != EINTR) {
        return {.state = IoState::kClosed, .reason = std::generic_category().message(errno)};
      }
    }
    pending_.clear();
    sent_ = 0;
    return {};
  }

  const std::string& read_error() const { return read_error_; }

 private:
  static SocketBuffer* Of(BIO* bio) { return static_cast<SocketBuffer*>(BIO_get_data(bio)); }

  int Write(BIO* bio, const char* data, std::size_t size) {
    BIO_clear_retry_flags(bio);
    if (pending_.size() + size > kSendBufferBytes && Flush().state != IoState::kReady) {
      // The next Flush reports an error again.
      BIO_set_retry_write(bio);
      return -1;
    }
    pending_.insert(pending_.end(), data, data + size);
    return static_cast<int>(size);
  }

  int Read(BIO* bio, char* data, std::size_t size) {
    BIO_clear_retry_flags(bio);
    while (true) {
      const ssize_t got = ::recv(socket_, data, size, 0);
      if (got > 0) return static_cast<int>(got);
      if (got == 0) {
        read_error_ = "the peer closed the connection";
        return 0;
      }
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        BIO_set_retry_read(bio);
      } else {
        read_error_ = std::generic_category().message(errno);
      }
      return -1;
    }
  }

  const int socket_;
  std::vector<char> pending_;
  std::size_t sent_ = 0;  // bytes of pending_
  std::string read_error_;
};

class TlsStream final : public PeerStream {
 public:
  TlsStream(SSL_CTX* context, int socket, TlsKey::Side side)
      : socket_(socket), ssl_(SSL_new(context), &SSL_free) {
    BIO* const bio = BIO_new(SocketBuffer::Method());
    CHECK(ssl_ != nullptr && bio != nullptr, "memory for a TLS connection");
    BIO_set_data(bio, &socket_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (side == TlsKey::Side::kDials)
      SSL_set_connect_state(ssl_.get());
    else
      SSL_set_accept_state(ssl_.get());
  }

  IoResult Handshake() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const IoResult handshake = done == 1 ? IoResult{} : Explain(done);
    // An alert that says why the handshake failed must reach the peer, too.
    const IoResult flushed = socket_.Flush();
    if (handshake.state == IoState::kClosed) return handshake;
    if (flushed.state != IoState::kReady) return flushed;
    if (handshake.state == IoState::kReady && SSL_session_reused(ssl_.get()) != 1)
      return {.state = IoState::kClosed,
              .reason = "the peer did not prove that it has the peers' key"};
    return handshake;
  }

  IoResult Read(std::span<std::byte> out) override {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int done = SSL_read_ex(ssl_.get(), out.data(), out.size(), &bytes);
    if (done == 1) return {.bytes = bytes};
    return Explain(done);
  }

  IoResult Write(std::span<const std::span<const std::byte>> parts) override {
    // Heads of frames and short payloads share a record; long payloads are encrypted without a copy
    // before.
    std::span<const std::byte> next = parts.front();
    if (next.size() < kRecordBytes && parts.size() > 1) {
      std::size_t size = 0;
      for (const auto& part : parts) {
        const auto taken = part.first(std::min(part.size(), kRecordBytes - size));
        if (!taken.empty()) std::memcpy(gathered_.data() + size, taken.data(), taken.size());
        size += taken.size();
        if (size == kRecordBytes) break;
      }
      next = std::span(gathered_).first(size);
    }
    if (next.empty()) return {};
    ERR_clear_error();
    std::size_t bytes = 0;
    const int done = SSL_write_ex(ssl_.get(), next.data(), next.size(), &bytes);
    if (done == 1) return {.bytes = bytes};
    IoResult result = Explain(done);
    if (result.state != IoState::kWantWrite) return result;
    const IoResult flushed = socket_.Flush();  // reports an error unless the socket is only full
    return flushed.state == IoState::kReady ? IoResult{} : flushed;
  }

  IoResult Flush() override { return socket_.Flush(); }
  bool authenticates() const override { return true; }  // AES-GCM

 private:
  IoResult Explain(int returned) {
    switch (SSL_get_error(ssl_.get(), returned)) {
      case SSL_ERROR_WANT_READ:
        return {.state = IoState::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {.state = IoState::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {.state = IoState::kClosed, .reason = "the peer closed the connection"};
      default:
        if (!socket_.read_error().empty()) {
          ERR_clear_error();
          return {.state = IoState::kClosed, .reason = socket_.read_error()};
        }
        return {.state = IoState::kClosed, .reason = OpenSslError()};
    }
  }

  SocketBuffer socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::array<std::byte, kRecordBytes> gathered_;
};

}  // namespace

struct TlsKey::Contexts {
  Key key;
  SslContext dials{nullptr, &SSL_CTX_free};
  SslContext accepts{nullptr, &SSL_CTX_free};

  ~Contexts() { OPENSSL_cleanse(key.data(), key.size()); }
};

TlsKey::TlsKey(std::unique_ptr<Contexts> contexts) : contexts_(std::move(contexts)) {}
TlsKey::TlsKey(TlsKey&&) noexcept = default;
TlsKey& TlsKey::operator=(TlsKey&&) noexcept = default;
TlsKey::~TlsKey() = default;

Result<TlsKey> TlsKey::FromPeerKey(std::string_view peer_key) {
  auto contexts = std::make_unique<Contexts>();
  ASSIGN_OR_RETURN(contexts->key, DeriveKey(peer_key));
  ASSIGN_OR_RETURN(contexts->dials, NewContext(TLS_client_method(), &contexts->key));
  ASSIGN_OR_RETURN(contexts->accepts, NewContext(TLS_server_method(), &contexts->key));
  // No learner has a certificate; one that is presented instead of the key is rejected.
  SSL_CTX_set_verify(contexts->dials.get(), SSL_VERIFY_PEER, nullptr);
  return TlsKey(std::move(contexts));
}

std::unique_ptr<PeerStream> TlsKey::NewStream(int socket, Side side) const {
  const SslContext& context = side == Side::kDials ? contexts_->dials : contexts_->accepts;
  return std::make_unique<TlsStream>(context.get(), socket, side);
}

}  // namespace pliant
