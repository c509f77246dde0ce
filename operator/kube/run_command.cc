#include "operator/kube/run_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"

namespace pliant::kube {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kComplaintBytesMost = 512;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }

  int get() const { return number_; }
  void Close() {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

std::string Reason(int error) { return std::strerror(error); }

// What is read does not block; what the program writes to does, as programs expect.
Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrorCode::kInternal, "pipe: " + Reason(errno));
  Pipe made{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return made;
}

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const auto replaced = [name = NameOf(*variable)](const std::string& other) {
      return NameOf(other) == name;
    };
    if (std::ranges::none_of(more, replaced)) all.emplace_back(*variable);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child in a process group of its own; killed, unless it was waited for.
class Child {
 public:
  static Result<Child> Start(const Command& command, int output, int complaint) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, complaint, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);

    // Signals as a program finds them that was started from a terminal.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);

    std::vector<std::string> words{command.program};
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<std::string> environment = EnvironmentWith(command.environment);
    pid_t process = 0;
    const int error = posix_spawnp(&process, command.program.c_str(), &files, &attributes,
                                   Pointers(words).data(), Pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error == EAGAIN || error == ENOMEM) return Fail(ErrorCode::kUnavailable, Reason(error));
    if (error != 0) return Fail(ErrorCode::kNotFound, command.program + ": " + Reason(error));
    return Child(process);
  }

  Child(Child&& other) noexcept : process_(std::exchange(other.process_, 0)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (process_ == 0) return;
    kill(-process_, SIGKILL);
    Wait();
  }

  pid_t process() const { return process_; }
  int Wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    process_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  explicit Child(pid_t process) : process_(process) {}

  pid_t process_;
};

// What can be had without waiting, but no more than the fullest pipe holds: who never stops writing
// shall be seen to write too much. False at the end of the file.
bool ReadInto(int descriptor, std::string& text) {
  constexpr int kReadsMost = 8;
  std::array<char, 16384> bytes;
  for (int i = 0; i < kReadsMost; ++i) {
    const ssize_t got = read(descriptor, bytes.data(), bytes.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

Result<CommandOutput> RunCommand(const Command& command, const std::stop_token& stop) {
  const auto deadline = steady_clock::now() + command.time_most;
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSIGN_OR_RETURN(Pipe complaint, MakePipe());
  const Descriptor stopped(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback on_stop(stop, [&stopped] { eventfd_write(stopped.get(), 1); });
  ASSIGN_OR_RETURN(Child child, Child::Start(command, output.write.get(), complaint.write.get()));
  output.write.Close();
  complaint.write.Close();
  // By number: the C library's header is none for C++.
  const Descriptor ended(static_cast<int>(syscall(SYS_pidfd_open, child.process(), 0)));
  if (ended.get() < 0) return Fail(ErrorCode::kInternal, "pidfd_open: " + Reason(errno));

  CommandOutput result;
  const auto take = [&](Descriptor& from, std::string& text) {
    if (from.get() >= 0 && !ReadInto(from.get(), text)) from.Close();
  };
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) {
      return Fail(ErrorCode::kTimeout,
                  Format("{}: not done after {}", command.program,
                         std::chrono::duration_cast<std::chrono::milliseconds>(command.time_most)));
    }
    // A descriptor of -1 is passed over.
    pollfd ready[] = {{.fd = ended.get(), .events = POLLIN, .revents = 0},
                      {.fd = stopped.get(), .events = POLLIN, .revents = 0},
                      {.fd = output.read.get(), .events = POLLIN, .revents = 0},
                      {.fd = complaint.read.get(), .events = POLLIN, .revents = 0}};
    poll(ready, std::size(ready), static_cast<int>(std::min<long>(left.count(), 60'000)));
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    // What it left running may hold the pipes open: its own end counts.
    const bool over = ready[0].revents != 0;
    take(output.read, result.output);
    take(complaint.read, result.complaint);
    if (result.complaint.size() > kComplaintBytesMost) {
      result.complaint.erase(0, result.complaint.size() - kComplaintBytesMost);
    }
    if (result.output.size() > command.output_bytes_most) {
      return Invalid(command.program + ": wrote more than " +
                     std::to_string(command.output_bytes_most) + " bytes");
    }
    if (over) {
      result.exit_status = child.Wait();
      return result;
    }
  }
}

}  // namespace pliant::kube
