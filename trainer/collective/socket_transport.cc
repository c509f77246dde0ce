#include "trainer/collective/socket_transport.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/host_port.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/collective/connection_driver.h"
#include "trainer/collective/shm_frame_codec.h"
#include "trainer/collective/shm_rendezvous.h"
#include "trainer/collective/tcp_frame_codec.h"

namespace pliant {
namespace {

using boost::asio::ip::tcp;
using boost::asio::local::stream_protocol;
using boost::system::error_code;

// Max accepted connections that have not sent a hello; the rest waits in the kernel's queue.
constexpr std::size_t kMaxUnauthenticated = 256;
// Time that each of them has for its hello when there are that many: all learners of a large job
// may dial at once.
constexpr Duration kHandshakeTimeout = std::chrono::milliseconds(500);
constexpr std::size_t kPoolKeptBytes = std::size_t{256} << 20;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

constexpr std::string_view kShmMark = ";shm=";

// The parts of "10.0.0.7:4000;shm=TAG"; without shared memory there is no tag.
struct SplitAddress {
  std::string_view tcp;
  std::string_view tag;
};
SplitAddress Split(std::string_view address) {
  const std::size_t mark = address.find(kShmMark);
  if (mark == std::string_view::npos) return {.tcp = address, .tag = {}};
  return {.tcp = address.substr(0, mark), .tag = address.substr(mark + kShmMark.size())};
}

// "10.0.0.7:4000" or "[fd00::7]:4000".
Result<tcp::endpoint> ParseAddress(std::string_view text) {
  error_code error;
  if (const auto address = ParseHostPort(text)) {
    const auto ip = boost::asio::ip::make_address(address->host, error);
    if (!error) return tcp::endpoint(ip, address->port);
  }
  return Invalid(Format("'{}' is not ip:port", text));
}

class SocketTransport final : public PeerTransport, public ConnectionDriver::Owner {
 public:
  SocketTransport(RealEventLoop& loop, SocketTransportOptions options,
                  std::shared_ptr<const TlsKey> key, const ShmKey& shm_key)
      : loop_(loop),
        options_(std::move(options)),
        key_(std::move(key)),
        shm_key_(shm_key),
        acceptor_(loop.context()),
        shm_acceptor_(loop.context()),
        random_(std::random_device{}()) {}

  ~SocketTransport() override {
    error_code ignored;
    acceptor_.close(ignored);
    shm_acceptor_.close(ignored);
    if (place_) std::remove(place_->PathOf(options_.self).c_str());
    for (const Unauthenticated& unauthenticated : unauthenticated_)
      unauthenticated.connection->Close();
    for (auto& [id, peer] : peers_) {
      loop_.Cancel(peer.redial);
      if (peer.connection != nullptr) peer.connection->Close();
    }
  }

  Status Listen(const boost::asio::ip::address& ip, const boost::asio::ip::address& advertise) {
    const tcp::endpoint endpoint(ip, options_.port);
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error)
      return Fail(
          ErrorCode::kUnavailable,
          Format("listen on {}: {}", HostAndPort(ip.to_string(), options_.port), error.message()));
    address_ = HostAndPort(advertise.to_string(), acceptor_.local_endpoint().port());
    AcceptNext();
    return {};
  }

  // Also listens for learners on this machine; if the kernel gives no shared memory, only TCP is
  // used.
  Status ListenShm() {
    auto place = ShmRendezvous::Open(options_.shared_memory_folder);
    if (!place) return std::unexpected(std::move(place).error());
    if (const Status gives = options_.shared_memory->Probe(); !gives) {
      LogNothingShared(gives.error().message);
      return {};
    }
    const std::string path = place->PathOf(options_.self);
    error_code error;
    shm_acceptor_.open(stream_protocol(), error);
    if (!error) shm_acceptor_.bind(path, error);
    if (!error) shm_acceptor_.listen(stream_protocol::acceptor::max_listen_connections, error);
    if (error)
      return Fail(ErrorCode::kUnavailable, Format("listen at {}: {}", path, error.message()));
    address_ += std::string(kShmMark) + place->tag();
    place_ = *std::move(place);
    AcceptNextShm();
    return {};
  }

  void SetHandler(PeerHandler* handler) override { handler_ = handler; }
  std::string address() const override { return address_; }

  void Connect(const Member& member) override {
    CHECK(handler_ != nullptr, "SetHandler comes first");
    CHECK(member.id != options_.self, "a learner does not connect to itself");
    const auto [peer, fresh] =
        peers_.try_emplace(member.id, Peer{.id = std::make_shared<const LearnerId>(member.id),
                                           .address = member.address,
                                           .backoff = Backoff(options_.dial_backoff)});
    if (fresh && options_.self > member.id) Dial(member.id, peer->second);
  }

  void Disconnect(const LearnerId& id) override {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    loop_.Cancel(found->second.redial);
    if (found->second.connection != nullptr) found->second.connection->Close();
    peers_.erase(found);
  }

  bool Connected(const LearnerId& id) const override {
    const auto found = peers_.find(id);
    return found != peers_.end() && found->second.open;
  }

  void Send(const LearnerId& id, Frame frame) override {
    const auto found = peers_.find(id);
    if (found == peers_.end() || !found->second.open) return;
    CHECK(frame.payload.view.size() <= options_.max_payload_bytes, "peers would refuse the frame");
    found->second.connection->Send(std::move(frame));
  }

 private:
  // A peer for which Connect was called and that was not lost since.
  struct Peer {
    std::shared_ptr<const LearnerId> id;  // outlives this struct, which a handler may erase
    std::string address;
    Backoff backoff;
    std::shared_ptr<ConnectionDriver> connection;  // open, or being dialled
    bool open = false;
    TimerId redial = 0;
    bool over_tcp = false;     // shared memory failed: the next dial uses TCP
    std::string last_problem;  // of dialling; logged once
  };

  // An accepted connection that has not sent its hello.
  struct Unauthenticated {
    std::shared_ptr<ConnectionDriver> connection;
    TimePoint since;
  };

  ConnectionLimits limits() const {
    return {.max_payload_bytes = options_.max_payload_bytes,
            .max_send_queue_bytes = options_.max_send_queue_bytes,
            .max_unacknowledged = options_.max_unacknowledged};
  }

  std::shared_ptr<ConnectionDriver> NewTcpConnection(ConnectionDriver::Socket socket,
                                                     TlsKey::Side side) {
    return NewConnection(std::move(socket), [this, side](int connected, auto&&) {
      return std::make_unique<TcpFrameCodec>(connected, limits(), pool_, key_, side);
    });
  }

  std::shared_ptr<ConnectionDriver> NewShmConnection(ConnectionDriver::Socket socket,
                                                     ShmSide side) {
    return NewConnection(
        std::move(socket), [this, side](int connected, std::function<void()> wake) {
          return std::make_unique<ShmFrameCodec>(
              connected, limits(), pool_, *options_.shared_memory, shm_key_, side, std::move(wake));
        });
  }

  std::shared_ptr<ConnectionDriver> NewConnection(ConnectionDriver::Socket socket,
                                                  ConnectionDriver::MakeCodec make_codec) {
    return std::make_shared<ConnectionDriver>(std::move(socket), *this, options_.handshake_timeout,
                                              std::move(make_codec));
  }

  PeerHello HelloTo(const LearnerId& peer) const { return {.from = options_.self, .to = peer}; }

  void AcceptNext() {
    if (!HasRoom()) return Later([this] { AcceptNext(); });
    acceptor_.async_accept(
        [this, watch = lifetime_.watch()](const error_code& error, tcp::socket socket) {
          if (watch.over() || error == boost::asio::error::operation_aborted) return;
          if (!Accepted(error)) return Later([this] { AcceptNext(); });
          const auto unauthenticated = NewTcpConnection(std::move(socket), TlsKey::Side::kAccepts);
          unauthenticated_.push_back({.connection = unauthenticated, .since = loop_.Now()});
          AcceptNext();
          unauthenticated->Serve();
        });
  }

  void AcceptNextShm() {
    if (!place_) return;
    if (!HasRoom()) return Later([this] { AcceptNextShm(); });
    shm_acceptor_.async_accept(
        [this, watch = lifetime_.watch()](const error_code& error, stream_protocol::socket socket) {
          if (watch.over() || error == boost::asio::error::operation_aborted) return;
          if (!Accepted(error)) return Later([this] { AcceptNextShm(); });
          const auto unauthenticated = NewShmConnection(std::move(socket), ShmSide::kAccepts);
          unauthenticated_.push_back({.connection = unauthenticated, .since = loop_.Now()});
          AcceptNextShm();
          unauthenticated->Serve();
        });
  }

  // Whether there is room for one more unauthenticated connection. Closes the oldest if its time is
  // over: a client that only connects keeps no learner out.
  bool HasRoom() {
    if (unauthenticated_.size() < kMaxUnauthenticated) return true;
    const Unauthenticated& oldest = unauthenticated_.front();
    if (loop_.Now() - oldest.since < kHandshakeTimeout) return false;
    oldest.connection->Close();
    unauthenticated_.pop_front();
    LogRejected("it sent no hello, and other connections are waiting");
    return true;
  }

  // Logs a failure once; the likely cause is a lack of file descriptors.
  bool Accepted(const error_code& error) {
    const bool failed_before = std::exchange(accept_fails_, static_cast<bool>(error));
    if (error && !failed_before)
      log::Warning("cannot accept a connection", {{"error", error.message()}});
    return !error;
  }

  // Waiting connections can be accepted later: without a pause this would spin.
  void Later(std::function<void()> accept) {
    loop_.PostAfter(kAcceptPause, lifetime_.Guard(std::move(accept)));
  }

  // A connection by shared memory would be lost again as soon as there is something to send. Peers
  // that dial this learner find no socket, and use TCP.
  void StopSharing(const std::string& refusal) {
    error_code ignored;
    shm_acceptor_.close(ignored);
    std::remove(place_->PathOf(options_.self).c_str());
    place_.reset();
    LogNothingShared(refusal);
  }

  static void LogNothingShared(const std::string& refusal) {
    log::Warning("shared memory is not used",
                 {{"reason", refusal},
                  {"cost", "gradients use TCP on this machine too: reductions take longer"},
                  {"remedy", "allow memfd_create (seccomp), or raise the limit of open files"}});
  }

  void Dial(const LearnerId& id, Peer& peer) {
    const SplitAddress address = Split(peer.address);
    if (place_ && place_->tag() == address.tag && !peer.over_tcp) {
      peer.connection =
          NewShmConnection(ConnectionDriver::Socket(loop_.context()), ShmSide::kDials);
      return peer.connection->Dial(stream_protocol::endpoint(place_->PathOf(id)), HelloTo(id));
    }
    const Result<tcp::endpoint> endpoint = ParseAddress(address.tcp);
    if (!endpoint) return RedialLater(id, peer, endpoint.error().message);
    peer.connection =
        NewTcpConnection(ConnectionDriver::Socket(loop_.context()), TlsKey::Side::kDials);
    peer.connection->Dial(*endpoint, HelloTo(id));
  }

  void RedialLater(const LearnerId& id, Peer& peer, const std::string& problem) {
    if (problem != peer.last_problem)
      log::Info("peer not reached yet",
                {{"peer", ToString(id)}, {"address", peer.address}, {"reason", problem}});
    peer.last_problem = problem;
    peer.over_tcp = !peer.over_tcp;
    const Duration delay = peer.backoff.Next(std::uniform_real_distribution<>(0, 1)(random_));
    peer.redial = loop_.PostAfter(delay, [this, id] { Dial(id, peers_.at(id)); });
  }

  void OnHello(ConnectionDriver& connection, const PeerHello& hello) override {
    const auto unauthenticated = FindUnauthenticated(connection);
    if (unauthenticated == unauthenticated_.end()) return OnAnswer(connection, hello);
    const std::shared_ptr<ConnectionDriver> accepted = unauthenticated->connection;
    unauthenticated_.erase(unauthenticated);
    const auto found = peers_.find(hello.from);
    if (hello.to != options_.self || hello.from < options_.self || found == peers_.end())
      return connection.Close();
    Peer& peer = found->second;
    if (peer.connection != nullptr) {
      // The peer dials only if it has lost the connection that this side still has.
      connection.Close();
      const std::shared_ptr<ConnectionDriver> old = peer.connection;
      old->Close();
      return OnConnectionClosed(*old, {.reason = "the peer has lost the connection"});
    }
    peer.connection = accepted;
    const PeerHello answer = HelloTo(hello.from);
    connection.Accept(peer.id, &answer);
    Open(hello.from, peer);
  }

  // The side that dialled receives the hello of the learner that answers.
  void OnAnswer(ConnectionDriver& connection, const PeerHello& hello) {
    const auto found = FindByConnection(connection);
    CHECK(found != peers_.end(), "a connection that is not closed is a peer's");
    if (hello.from != found->first || hello.to != options_.self) {
      connection.Close();
      return OnConnectionClosed(connection, {.reason = "another learner answers at its address"});
    }
    connection.Accept(found->second.id, nullptr);
    Open(found->first, found->second);
  }

  void Open(const LearnerId& id, Peer& peer) {
    peer.open = true;
    handler_->OnPeerConnected(LearnerId(id));
  }

  MutableBytes ReceiveBufferFor(const ConnectionDriver& connection, const FrameHeader& header,
                                std::size_t bytes) override {
    return handler_->ReceiveBufferFor(*connection.peer(), header, bytes);
  }

  void OnConnectionFrame(ConnectionDriver& connection, Frame frame) override {
    // The handler may drop the connection.
    const std::shared_ptr<const LearnerId> peer = connection.peer();
    handler_->OnFrame(*peer, std::move(frame));
  }

  void OnConnectionClosed(ConnectionDriver& connection, const PeerLoss& loss) override {
    if (const auto unauthenticated = FindUnauthenticated(connection);
        unauthenticated != unauthenticated_.end()) {
      unauthenticated_.erase(unauthenticated);
      LogRejected(loss.reason);
      return;
    }
    const auto found = FindByConnection(connection);
    if (found == peers_.end()) return;
    const LearnerId id = found->first;
    if (!found->second.open) {
      found->second.connection.reset();
      return RedialLater(id, found->second, loss.reason);
    }
    peers_.erase(found);
    if (place_) {
      const std::string refusal = options_.shared_memory->refusal();
      if (!refusal.empty()) StopSharing(refusal);
    }
    handler_->OnPeerLost(id, loss);
  }

  // The cause is a wrong key, a scanner, or a peer that timed out. It is logged for diagnosis, at
  // most once a second.
  void LogRejected(const std::string& reason) {
    const TimePoint now = loop_.Now();
    if (last_complaint_ && now - *last_complaint_ < std::chrono::seconds(1)) return;
    last_complaint_ = now;
    log::Warning("connection refused", {{"reason", reason}});
  }

  std::list<Unauthenticated>::iterator FindUnauthenticated(const ConnectionDriver& connection) {
    return std::ranges::find_if(unauthenticated_, [&](const Unauthenticated& unauthenticated) {
      return unauthenticated.connection.get() == &connection;
    });
  }

  std::map<LearnerId, Peer>::iterator FindByConnection(const ConnectionDriver& connection) {
    return std::ranges::find_if(
        peers_, [&](const auto& entry) { return entry.second.connection.get() == &connection; });
  }

  RealEventLoop& loop_;
  const SocketTransportOptions options_;
  const std::shared_ptr<const TlsKey> key_;
  const ShmKey shm_key_;
  tcp::acceptor acceptor_;
  stream_protocol::acceptor shm_acceptor_;
  std::optional<ShmRendezvous> place_;
  std::string address_;
  PeerHandler* handler_ = nullptr;
  BytePool pool_{kPoolKeptBytes};
  std::map<LearnerId, Peer> peers_;
  std::list<Unauthenticated> unauthenticated_;  // the oldest first
  bool accept_fails_ = false;
  std::optional<TimePoint> last_complaint_;
  std::mt19937_64 random_;
  const Lifetime lifetime_;
};

}  // namespace

Result<std::unique_ptr<PeerTransport>> MakeSocketTransport(RealEventLoop& loop,
                                                           SocketTransportOptions options) {
  error_code error;
  const auto listen_ip = boost::asio::ip::make_address(options.listen_ip, error);
  if (error) return Invalid(Format("listen ip '{}' is not an IP address", options.listen_ip));
  const auto advertise_ip = boost::asio::ip::make_address(
      options.advertise_ip.empty() ? options.listen_ip : options.advertise_ip, error);
  if (error)
    return Invalid(Format("advertised ip '{}' is not an IP address", options.advertise_ip));
  std::shared_ptr<const TlsKey> key;
  if (!options.peer_key.empty()) {
    ASSIGN_OR_RETURN(TlsKey derived, TlsKey::FromPeerKey(options.peer_key));
    key = std::make_shared<const TlsKey>(std::move(derived));
  } else if (!listen_ip.is_loopback()) {
    return Invalid(Format("without a peer key the listen ip must be a loopback address, not {}",
                          options.listen_ip));
  }
  const bool shares = !options.shared_memory_folder.empty();
  CHECK(!shares || options.shared_memory != nullptr, "shared memory to share");
  const ShmKey shm_key = ShmKeyOf(options.peer_key);
  options.peer_key.clear();
  auto transport =
      std::make_unique<SocketTransport>(loop, std::move(options), std::move(key), shm_key);
  RETURN_IF_ERROR(transport->Listen(listen_ip, advertise_ip));
  if (shares) RETURN_IF_ERROR(transport->ListenShm());
  return transport;
}

}  // namespace pliant
