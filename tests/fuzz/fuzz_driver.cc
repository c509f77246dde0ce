// Runs a fuzz target without libFuzzer: on its seeds, then on mutations of them, the same ones
// every time. After a crash, a failed check or a sanitizer report it prints the number of the
// input.
//
//   x_fuzz [--runs=N] [--first=N]    mutations first … first + runs − 1
//   x_fuzz --corpus=FOLDER           writes the seeds there, for libFuzzer
//   x_fuzz FILE...                   runs these inputs

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr std::uint64_t kRuns = 50'000;
constexpr std::size_t kMaxBytes = 4096;

// Words that often confuse parsers.
constexpr std::array<std::string_view, 24> kWords = {"null",
                                                     "true",
                                                     "{}",
                                                     "[]",
                                                     "\"",
                                                     "\\u0000",
                                                     "\\ud800",
                                                     "-1",
                                                     "0",
                                                     "1e999",
                                                     "-0.0",
                                                     "0.5",
                                                     "\xff",
                                                     "\xc3\x28",
                                                     "[[[[[[",
                                                     "{\"a\":",
                                                     ",",
                                                     "9007199254740993",
                                                     "18446744073709551615",
                                                     "18446744073709551616",
                                                     "99999999999999999999999999",
                                                     "4294967296",
                                                     std::string_view("\0\0\0\0", 4),
                                                     "\xff\xff\xff\xff\xff\xff\xff\x7f"};

std::uint64_t the_input = 0;  // number of the running input, for the message

void Run(const std::string& input) {
  // A copy of the exact size, so that the sanitizer detects a read past its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string Make(std::uint64_t number) {
    random_.seed(number);
    std::string input = seeds_[Below(seeds_.size())];
    for (std::size_t i = 1 + Below(4); i > 0; --i) Change(input);
    input.resize(std::min(input.size(), kMaxBytes));
    return input;
  }

 private:
  std::size_t Below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void Change(std::string& input) {
    const std::size_t at = Below(input.size() + 1);
    const std::size_t length = Below(std::min<std::size_t>(input.size() - at, 16) + 1);
    switch (Below(8)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
        return;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(Below(256));
        return;
      case 2:
        input.erase(at, length);
        return;
      case 3:
        input.insert(at, input.substr(at, length));
        return;
      case 4:
        input.replace(at, length, kWords[Below(kWords.size())]);
        return;
      case 5:
        input.insert(at, kWords[Below(kWords.size())]);
        return;
      case 6:
        input.resize(at);
        return;
      default: {  // continues with the end of another seed
        const std::string& other = seeds_[Below(seeds_.size())];
        input = input.substr(0, at) + other.substr(std::min(at, other.size()));
      }
    }
  }

  const std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

bool TakeNumber(std::string_view argument, std::string_view name, std::uint64_t& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const char* const end = argument.data() + argument.size();
  const auto parsed = std::from_chars(argument.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

void WriteCorpus(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
}

// Prints the number of the input. Called when the process is about to abort.
void NameInput(int signal) {
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), "fuzz input --first=%llu --runs=1\n",
                                 static_cast<unsigned long long>(the_input));
  if (::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(size)) < 0) std::_Exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> seeds = pliant::fuzz::Seeds();
  std::uint64_t runs = kRuns;
  std::uint64_t first = 1;
  std::vector<std::string> files;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    if (argument.starts_with("--corpus=")) {
      WriteCorpus(std::string(argument.substr(9)), seeds);
      return EXIT_SUCCESS;
    }
    if (TakeNumber(argument, "--runs=", runs) || TakeNumber(argument, "--first=", first)) continue;
    if (argument.starts_with("--")) {
      std::cerr << "unknown or wrong: " << argument << '\n';
      return 2;
    }
    files.emplace_back(argument);
  }
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    Run({std::istreambuf_iterator<char>(in), {}});
  }
  if (!files.empty()) return EXIT_SUCCESS;

  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, NameInput);
  for (const std::string& seed : seeds) Run(seed);
  Mutator mutator(seeds);
  for (std::uint64_t i = 0; i < runs; ++i) {
    the_input = first + i;
    Run(mutator.Make(the_input));
  }
  std::cout << seeds.size() << " seeds and " << runs << " mutations\n";
  return EXIT_SUCCESS;
}
