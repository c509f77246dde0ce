#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include "trainer/checkpoint/checksum.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/gradient_rounds.h"

namespace pliant {

// Sums that end when the test says so, or with an error when they are aborted.
class FakeRounds final : public GradientRounds {
 public:
  CommunicatorPartner partner() const override { return {}; }
  void NewId(std::function<void(Result<CommunicatorId>)>) override {}
  void Join(const Seat&, std::function<void(Status)>) override {}
  void Abort(std::function<void()> done) override {
    ++aborts;
    if (aborts_end) End(Fail(ErrorCode::kCancelled, "aborted"));
    done();
  }
  void Begin(Sum) override {
    const std::lock_guard lock(mutex_);
    result_.reset();
  }
  void Add(std::span<const HeldNode>, std::uint32_t) override { ++added; }
  void WhenOver(std::function<void(Status)> done) override {
    {
      const std::lock_guard lock(mutex_);
      if (!result_) {
        done_ = std::move(done);
        return;
      }
    }
    done(*result_);
  }

  void End(const Status& result) {
    std::function<void(Status)> done;
    {
      const std::lock_guard lock(mutex_);
      if (!result_) result_ = result;
      done = std::exchange(done_, nullptr);
    }
    if (done) done(result);
  }

  std::atomic<int> aborts = 0;
  std::atomic<bool> aborts_end = true;  // at once
  std::atomic<int> added = 0;

 private:
  std::mutex mutex_;
  std::optional<Status> result_;
  std::function<void(Status)> done_;
};

// A device whose memory is the host's. Work is done at once, but Then may be held.
class FakeGradientDevice final : public GradientDevice {
 public:
  void Zero(std::span<float> out) override { HostArithmetic().Zero(out); }
  void AddUp(std::span<const std::span<const float>> addends, std::span<float> out) override {
    HostArithmetic().AddUp(addends, out);
  }
  MemorySource& memory() override {
    class None final : public MemorySource {
      std::shared_ptr<std::byte> Allocate(std::size_t) override { throw std::bad_alloc(); }
    };
    static None none;
    return has_memory ? HeapMemory() : none;
  }
  MemorySource& pinned_memory() override { return HeapMemory(); }
  std::unique_ptr<MemorySource> Pinned(MemorySource& source) override {
    class Passes final : public MemorySource {
     public:
      explicit Passes(MemorySource& of) : of_(of) {}
      std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
        return of_.Allocate(bytes);
      }

     private:
      MemorySource& of_;
    };
    return std::make_unique<Passes>(source);
  }
  void Mean(const TreeLevels&, std::span<const std::span<const float>>, float,
            std::span<float>) override {}
  void Squares(std::span<const float>, std::span<double>) override {}
  void Checksum(std::span<const float> gradient, std::uint64_t& sum) override {
    sum = ChecksumOf(std::as_bytes(gradient));
  }
  void ToHost(std::span<const std::byte> from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from.data(), from.size());
  }
  void Report(std::span<const std::byte> from, std::span<std::byte> to) override {
    ToHost(from, to);
  }
  void ToDevice(std::span<const std::byte> from, std::span<std::byte> to) override {
    ToHost(from, to);
  }
  GradientRounds* rounds() override { return &exchange; }
  void Then(std::function<void(Status)> done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
    changed_.notify_all();
  }
  bool Drain() override {
    Hold(false);
    exchange.Abort([] {});
    std::unique_lock lock(mutex_);
    waiting_.clear();
    changed_.wait(lock, [this] { return !calling_; });
    return true;
  }

  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  // How many calls of Then are held.
  std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return held_ ? waiting_.size() : 0;
  }

  FakeRounds exchange;
  std::atomic<bool> has_memory = true;

 private:
  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !held_ && !waiting_.empty(); })) {
      const std::function<void(Status)> done = std::move(waiting_.front());
      waiting_.pop_front();
      calling_ = true;
      lock.unlock();
      done({});
      lock.lock();
      calling_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::function<void(Status)>> waiting_;
  bool held_ = false;
  bool calling_ = false;
  std::jthread thread_{[this](const std::stop_token& stop) { Run(stop); }};  // last
};

}  // namespace pliant
