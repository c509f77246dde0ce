#include "trainer/collective/tcp_transport.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <format>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/collective/tcp_connection.h"

namespace pliant {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Connections that have not said yet who they are: the rest waits in the kernel's queue.
constexpr std::size_t kStrangersMost = 256;
constexpr std::size_t kPoolKeptBytes = std::size_t{256} << 20;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// "10.0.0.7:4000" or "[fd00::7]:4000".
Result<tcp::endpoint> ParseAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  error_code error;
  boost::asio::ip::address ip;
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    ip = boost::asio::ip::make_address(host, error);
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
    if (!error && parsed.ec == std::errc() && parsed.ptr == end) return tcp::endpoint(ip, port);
  }
  return Invalid(std::format("'{}' is not ip:port", text));
}

std::string FormatAddress(const boost::asio::ip::address& ip, std::uint16_t port) {
  return ip.is_v6() ? std::format("[{}]:{}", ip.to_string(), port)
                    : std::format("{}:{}", ip.to_string(), port);
}

class TcpTransport final : public PeerTransport, public TcpConnection::Owner {
 public:
  TcpTransport(RealEventLoop& loop, TcpTransportOptions options, std::shared_ptr<const TlsKey> key)
      : loop_(loop),
        options_(std::move(options)),
        key_(std::move(key)),
        acceptor_(loop.context()),
        random_(std::random_device{}()) {}

  ~TcpTransport() override {
    *alive_ = false;
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& stranger : strangers_) stranger->Close();
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
          std::format("listen on {}: {}", FormatAddress(ip, options_.port), error.message()));
    address_ = FormatAddress(advertise, acceptor_.local_endpoint().port());
    AcceptNext();
    return {};
  }

  void SetHandler(PeerHandler* handler) override { handler_ = handler; }
  std::string address() const override { return address_; }

  void Connect(const Member& member) override {
    CHECK(handler_ != nullptr, "SetHandler comes first");
    CHECK(member.id != options_.self, "a learner does not connect to itself");
    const auto [peer, fresh] = peers_.try_emplace(
        member.id, Peer{.address = member.address, .backoff = Backoff(options_.dial_backoff)});
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
    CHECK(frame.payload.view.size() <= options_.payload_bytes_most, "peers would refuse the frame");
    found->second.connection->Send(std::move(frame));
  }

 private:
  // One that Connect asked for and that was not lost since.
  struct Peer {
    std::string address;
    Backoff backoff;
    std::shared_ptr<TcpConnection> connection;  // open, or dialled and on its way
    bool open = false;
    TimerId redial = 0;
    std::string last_problem;  // of dialling: said once
  };

  std::shared_ptr<TcpConnection> NewConnection(tcp::socket socket, TlsKey::Side side) {
    return std::make_shared<TcpConnection>(
        std::move(socket), *this,
        TcpConnectionLimits{.payload_bytes_most = options_.payload_bytes_most,
                            .send_queue_bytes_most = options_.send_queue_bytes_most,
                            .handshake_timeout = options_.handshake_timeout,
                            .unacknowledged_most = options_.unacknowledged_most},
        pool_, key_, side);
  }

  PeerHello HelloTo(const LearnerId& peer) const { return {.from = options_.self, .to = peer}; }

  void AcceptNext() {
    acceptor_.async_accept([this, alive = alive_](const error_code& error, tcp::socket socket) {
      if (!*alive || error == boost::asio::error::operation_aborted) return;
      if (error || strangers_.size() >= kStrangersMost) {
        // Out of descriptors, or under attack: those that wait may be served later.
        loop_.PostAfter(kAcceptPause, [this, alive] {
          if (*alive) AcceptNext();
        });
        return;
      }
      auto connection = NewConnection(std::move(socket), TlsKey::Side::kAccepts);
      strangers_.insert(connection);
      AcceptNext();
      connection->Serve();
    });
  }

  void Dial(const LearnerId& id, Peer& peer) {
    const Result<tcp::endpoint> address = ParseAddress(peer.address);
    if (!address) return RedialLater(id, peer, address.error().message);
    peer.connection = NewConnection(tcp::socket(loop_.context()), TlsKey::Side::kDials);
    peer.connection->Dial(*address, HelloTo(id));
  }

  void RedialLater(const LearnerId& id, Peer& peer, const std::string& problem) {
    if (problem != peer.last_problem)
      log::Info("peer not reached yet",
                {{"peer", ToString(id)}, {"address", peer.address}, {"reason", problem}});
    peer.last_problem = problem;
    const Duration delay = peer.backoff.Next(std::uniform_real_distribution<>(0, 1)(random_));
    peer.redial = loop_.PostAfter(delay, [this, id] { Dial(id, peers_.at(id)); });
  }

  void OnHello(TcpConnection& connection, const PeerHello& hello) override {
    const auto stranger = strangers_.find(connection.shared_from_this());
    if (stranger == strangers_.end()) return OnAnswer(connection, hello);
    const std::shared_ptr<TcpConnection> accepted = *stranger;
    strangers_.erase(stranger);
    const auto found = peers_.find(hello.from);
    if (hello.to != options_.self || hello.from < options_.self || found == peers_.end())
      return connection.Close();
    Peer& peer = found->second;
    if (peer.connection != nullptr) {
      // The peer would not dial if it knew of the connection that this side still has.
      connection.Close();
      const std::shared_ptr<TcpConnection> old = peer.connection;
      old->Close();
      return OnConnectionClosed(*old, "the peer has lost the connection");
    }
    peer.connection = accepted;
    const PeerHello answer = HelloTo(hello.from);
    connection.Accept(&answer);
    Open(hello.from, peer);
  }

  // The side that dialled hears who answered.
  void OnAnswer(TcpConnection& connection, const PeerHello& hello) {
    const auto found = FindByConnection(connection);
    CHECK(found != peers_.end(), "a connection that is not closed is a peer's");
    if (hello.from != found->first || hello.to != options_.self) {
      connection.Close();
      return OnConnectionClosed(connection, "another learner answers at its address");
    }
    connection.Accept(nullptr);
    Open(found->first, found->second);
  }

  void Open(const LearnerId& id, Peer& peer) {
    peer.open = true;
    handler_->OnPeerConnected(LearnerId(id));
  }

  MutableBytes PlaceFor(const TcpConnection& connection, const FrameHeader& header,
                        std::size_t bytes) override {
    const auto found = FindByConnection(connection);
    CHECK(found != peers_.end(), "a connection that is not closed is a peer's");
    return handler_->PlaceFor(found->first, header, bytes);
  }

  void OnConnectionFrame(TcpConnection& connection, Frame frame) override {
    const auto found = FindByConnection(connection);
    CHECK(found != peers_.end(), "a connection that is not closed is a peer's");
    handler_->OnFrame(LearnerId(found->first), std::move(frame));
  }

  void OnConnectionClosed(TcpConnection& connection, const std::string& reason) override {
    if (const auto stranger = strangers_.find(connection.shared_from_this());
        stranger != strangers_.end()) {
      strangers_.erase(stranger);
      ComplainOfStranger(reason);
      return;
    }
    const auto found = FindByConnection(connection);
    if (found == peers_.end()) return;
    const LearnerId id = found->first;
    if (!found->second.open) {
      found->second.connection.reset();
      return RedialLater(id, found->second, reason);
    }
    peers_.erase(found);
    handler_->OnPeerLost(id, reason);
  }

  // A wrong key, a scanner, or a peer that gave up: of use to whoever looks for the reason, but no
  // more than once a second.
  void ComplainOfStranger(const std::string& reason) {
    const TimePoint now = loop_.Now();
    if (last_complaint_ && now - *last_complaint_ < std::chrono::seconds(1)) return;
    last_complaint_ = now;
    log::Warning("connection refused", {{"reason", reason}});
  }

  std::map<LearnerId, Peer>::iterator FindByConnection(const TcpConnection& connection) {
    return std::ranges::find_if(
        peers_, [&](const auto& entry) { return entry.second.connection.get() == &connection; });
  }

  RealEventLoop& loop_;
  const TcpTransportOptions options_;
  const std::shared_ptr<const TlsKey> key_;
  tcp::acceptor acceptor_;
  std::string address_;
  PeerHandler* handler_ = nullptr;
  BytePool pool_{kPoolKeptBytes};
  std::map<LearnerId, Peer> peers_;
  std::set<std::shared_ptr<TcpConnection>> strangers_;  // accepted, no hello yet
  std::optional<TimePoint> last_complaint_;
  std::mt19937_64 random_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

Result<std::unique_ptr<PeerTransport>> MakeTcpTransport(RealEventLoop& loop,
                                                        TcpTransportOptions options) {
  error_code error;
  const auto listen_ip = boost::asio::ip::make_address(options.listen_ip, error);
  if (error) return Invalid(std::format("listen ip '{}' is no address", options.listen_ip));
  const auto advertise_ip = boost::asio::ip::make_address(
      options.advertise_ip.empty() ? options.listen_ip : options.advertise_ip, error);
  if (error) return Invalid(std::format("advertised ip '{}' is no address", options.advertise_ip));
  std::shared_ptr<const TlsKey> key;
  if (!options.token.empty()) {
    ASSIGN_OR_RETURN(TlsKey derived, TlsKey::FromToken(options.token));
    key = std::make_shared<const TlsKey>(std::move(derived));
  } else if (!listen_ip.is_loopback()) {
    return Invalid(std::format("without a token peers are served on loopback only, not on {}",
                               options.listen_ip));
  }
  options.token.clear();
  auto transport = std::make_unique<TcpTransport>(loop, std::move(options), std::move(key));
  RETURN_IF_ERROR(transport->Listen(listen_ip, advertise_ip));
  return transport;
}

}  // namespace pliant
