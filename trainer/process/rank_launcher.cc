#include "trainer/process/rank_launcher.h"

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ranges>
#include <system_error>
#include <utility>

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/signals.h"

namespace pliant {
namespace {

constexpr const char* kRanks = "PLIANT_RANKS_PER_LEARNER";
constexpr const char* kLocalRank = "PLIANT_LOCAL_RANK";
constexpr const char* kLauncher = "PLIANT_LAUNCHER";  // its process id
// After their grace period and this time, ranks that were asked to leave are killed.
constexpr Duration kBeyondGrace = std::chrono::seconds(5);

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (const auto part : text | std::views::split(separator))
    parts.emplace_back(part.begin(), part.end());
  return parts;
}

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This program's arguments, as it was started.
std::vector<std::string> Arguments() {
  const std::string text = ReadFile("/proc/self/cmdline").value_or("");
  return Split(std::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1), '\0');
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::filesystem::path TerminationLogOf(const std::string& folder, int rank) {
  return std::filesystem::path(folder) / Format("termination-{}", rank);
}

// One process, and the descriptor that becomes readable when it has ended.
struct Rank {
  pid_t process = -1;
  std::unique_ptr<boost::asio::posix::stream_descriptor> end;
  bool running = false;
};

class Launcher {
 public:
  Launcher(int ranks, const LearnerEnvironment& environment)
      : environment_(environment), fates_(ranks), ranks_(static_cast<std::size_t>(ranks)) {}

  int Run() {
    std::string folder = (std::filesystem::temp_directory_path() / "pliant-ranks-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return Refuse("make " + folder);
    folder_ = folder;
    const std::uint64_t nonce = DrawNonce();
    for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
      if (!Start(rank, nonce)) {
        Stop(SIGKILL);
        return Refuse(Format("start rank {}", rank));
      }
    }
    StopSignals signals(loop_, [this](int signal) {
      log::Info("passes on a stop signal", {{"signal", signal}});
      Stop(signal);
    });
    loop_.Run();
    Conclude();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    return fates_.exit_code();
  }

 private:
  int Refuse(const std::string& what) {
    return FailLearner(
        environment_.termination_log,
        {ErrorCode::kInternal, what + ": " + std::generic_category().message(errno)});
  }

  bool Start(int rank, std::uint64_t nonce) {
    std::vector<std::string> inherited;
    for (char** variable = environ; *variable != nullptr; ++variable)
      inherited.emplace_back(*variable);
    std::vector<std::string> variables =
        EnvironmentOfRank(inherited, rank, static_cast<int>(std::ssize(ranks_)), nonce, folder_);
    variables.push_back(Format("{}={}", kLauncher, ::getpid()));
    std::vector<std::string> arguments = Arguments();
    Rank& started = ranks_[static_cast<std::size_t>(rank)];
    errno = ::posix_spawn(&started.process, "/proc/self/exe", nullptr, nullptr,
                          Pointers(arguments).data(), Pointers(variables).data());
    if (errno != 0) return false;
    started.running = true;
    // Not through the wrapper function: the C library's header lacks extern "C" for it.
    const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, started.process, 0));
    if (descriptor < 0) return false;
    started.end =
        std::make_unique<boost::asio::posix::stream_descriptor>(loop_.context(), descriptor);
    started.end->async_wait(boost::asio::posix::descriptor_base::wait_read,
                            [this, rank](const auto& error) {
                              if (!error) OnEnd(rank);
                            });
    log::Info("rank started", {{"rank", rank}, {"process", started.process}});
    return true;
  }

  void OnEnd(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    int status = 0;
    while (::waitpid(rank.process, &status, 0) < 0 && errno == EINTR) {
    }
    rank.running = false;
    log::Info("rank ended", {{"rank", number}, {"exitCode", ExitCodeOf(status)}});
    if (fates_.OnEnd(number, ExitCodeOf(status))) {
      Stop(SIGTERM);
      loop_.PostAfter(environment_.grace + kBeyondGrace, [this] { Stop(SIGKILL); });
    }
    if (fates_.all_ended()) loop_.Stop();
  }

  void Stop(int signal) {
    for (const Rank& rank : ranks_) {
      if (rank.running) ::kill(rank.process, signal);
    }
  }

  // The decisive rank's termination message becomes the learner's.
  void Conclude() const {
    if (environment_.termination_log.empty()) return;
    const auto message = ReadFile(TerminationLogOf(folder_, fates_.decisive_rank()));
    if (message && !message->empty()) {
      std::ofstream(environment_.termination_log, std::ios::trunc) << *message;
    }
  }

  const LearnerEnvironment& environment_;
  RealEventLoop loop_;
  RankExits fates_;
  std::vector<Rank> ranks_;
  std::string folder_;
};

}  // namespace

std::vector<std::string> EnvironmentOfRank(const std::vector<std::string>& environment, int rank,
                                           int ranks, std::uint64_t nonce,
                                           const std::string& folder) {
  std::string gpu = std::to_string(rank);
  std::string shared = folder;
  std::vector<std::string> result;
  const std::vector<std::string_view> own = {kLocalRank,
                                             kLauncher,
                                             "PLIANT_NONCE",
                                             "PLIANT_TERMINATION_LOG",
                                             "PLIANT_SHARED_MEMORY_DIR",
                                             "CUDA_VISIBLE_DEVICES"};
  for (const std::string& variable : environment) {
    const std::string_view name = NameOf(variable);
    const std::string value = variable.substr(std::min(name.size() + 1, variable.size()));
    if (name == "PLIANT_SHARED_MEMORY_DIR" && !value.empty()) shared = value;
    if (name == "CUDA_VISIBLE_DEVICES") {
      const std::vector<std::string> visible = Split(value, ',');
      // With fewer GPUs than ranks nothing can be divided: the program reports what is wrong.
      gpu = std::ssize(visible) >= ranks ? visible[static_cast<std::size_t>(rank)] : value;
    }
    if (!std::ranges::contains(own, name)) result.push_back(variable);
  }
  result.push_back(Format("{}={}", kLocalRank, rank));
  result.push_back(Format("PLIANT_NONCE={}", nonce));
  result.push_back("PLIANT_TERMINATION_LOG=" + TerminationLogOf(folder, rank).string());
  result.push_back("PLIANT_SHARED_MEMORY_DIR=" + shared);
  result.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
  return result;
}

bool RankExits::OnEnd(int rank, int exit_code) {
  --running_;
  if (exit_code == 0 || first_failed_) return false;
  first_failed_ = rank;
  exit_code_ = exit_code;
  return running_ > 0;
}

void LaunchRanks(const GetEnvironment& get) {
  const char* const ranks = get(kRanks);
  if (ranks == nullptr) return;
  if (get(kLocalRank) != nullptr) {
    // A rank does not outlive its launcher.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* const launcher = get(kLauncher);
    if (launcher != nullptr && std::to_string(::getppid()) != launcher) ::_exit(EXIT_FAILURE);
    return;
  }
  auto environment = ReadLearnerEnvironment(get);
  // A wrong environment is reported by the code that reads it next.
  if (!environment || environment->ranks_per_learner == 1) return;
  HoldStopSignals();
  // Not std::exit: all exit handlers are for the ranks to run.
  ::_exit(Launcher(environment->ranks_per_learner, *environment).Run());
}

}  // namespace pliant
