#include "tests/simulation/operator/trainings.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kStepsBetweenCheckpoints = 20;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

kube::HttpResponse Answer(int status, const Json& body) {
  return {.status = status, .headers = {}, .body = body.dump()};
}

}  // namespace

Trainings::Trainings(EventLoop& loop, kube::MemoryApiServer& server, Cluster& cluster,
                     Random& random)
    : loop_(loop), server_(server), cluster_(cluster), random_(random) {}

const TrainingOptions& Trainings::OptionsOf(const Training& training) {
  return options_[training.job];
}

Trainings::Training* Trainings::OfPod(const std::string& pod) {
  const auto uid = uids_.find(pod);
  return uid == uids_.end() ? nullptr : &trainings_.at(uid->second);
}

void Trainings::OnStart(const std::string& pod) {
  const auto object = server_.Find(pod);
  const std::string uid = LabelOf(*object, controller::kLabelJobUid);
  uids_[pod] = uid;
  Training& training = trainings_[uid];
  // A forged pod is created after the pods that it copies.
  if (training.job.empty()) training.job = JobOf(*object);
  if (!IsLearner(*object)) {
    coordinators_[pod] = {.term = std::stoll(LabelOf(*object, controller::kLabelTerm)),
                          .accepted = {},
                          .plan = Json::array(),
                          .started = loop_.Now()};
    Look(uid, 500ms);
    return;
  }
  if (const auto exit_code = OptionsOf(training).exit_code) {
    loop_.PostAfter(Between(random_, 10ms, 500ms), [this, pod, code = *exit_code] {
      cluster_.EndProgram(pod, code, {{"reason", "Failed"}, {"message", "as requested"}});
    });
  } else if (training.complete) {
    cluster_.EndProgram(pod, 0, ExitReport(training, "Completed"));
  } else {
    Look(uid, 2s);
  }
}

void Trainings::OnStopSignal(const std::string& pod) {
  const auto object = server_.Find(pod);
  Training* training = OfPod(pod);
  if (training == nullptr || object == nullptr) return;
  if (!IsLearner(*object)) {
    loop_.PostAfter(100ms, [this, pod] { cluster_.EndProgram(pod, 0, Json()); });
  } else if (!OptionsOf(*training).ignores_stop_signal) {
    loop_.PostAfter(OptionsOf(*training).step_time, [this, pod] {
      Training* still = OfPod(pod);
      if (still == nullptr || !cluster_.Runs(pod)) return;
      if (std::ranges::contains(still->members, pod)) {
        still->step = still->saved = StepNow(*still);  // it announced that it leaves
        still->since = loop_.Now();
      }
      cluster_.EndProgram(pod, 0, ExitReport(*still, "Drained"));
    });
  }
}

void Trainings::OnEnd(const std::string& pod) {
  coordinators_.erase(pod);
  Training* training = OfPod(pod);
  if (training == nullptr) return;
  if (std::ranges::contains(training->members, pod)) {
    training->step = StepNow(*training);
    training->since = loop_.Now();
  }
  Look(uids_.at(pod), 1s);
}

Trainings::Coordinator* Trainings::LeadingCoordinator(const std::string& uid) {
  Coordinator* leading = nullptr;
  for (auto& [pod, coordinator] : coordinators_) {
    if (uids_.at(pod) != uid) continue;
    if (leading == nullptr || coordinator.term > leading->term) leading = &coordinator;
  }
  // Learners refuse a coordinator whose term is lower than one they have seen.
  return leading != nullptr && leading->term >= trainings_.at(uid).term ? leading : nullptr;
}

bool Trainings::AwaitsWordToLeave(const std::string& job_uid, const std::string& learner) const {
  // Longer than the operator's longest pause between calls to a coordinator that was silent.
  constexpr Duration kSettled = 15s;
  const auto training = trainings_.find(job_uid);
  if (training == trainings_.end()) return false;
  const auto options = options_.find(training->second.job);
  const bool lies =
      options != options_.end() && (options->second.refuses_plans || options->second.flaps);
  if (lies || training->second.complete) return false;
  const auto member = std::ranges::find(training->second.members, learner, NameOf);
  if (member == training->second.members.end() || !cluster_.Runs(*member)) return false;
  const auto pod = server_.Find(*member);
  if (pod == nullptr || pod->at("metadata").contains("deletionTimestamp")) return false;
  int coordinators = 0;
  const Coordinator* leading = nullptr;
  for (const auto& [path, coordinator] : coordinators_) {
    if (uids_.at(path) != job_uid) continue;
    ++coordinators;
    leading = &coordinator;
  }
  if (coordinators != 1 || loop_.Now() - leading->started <= kSettled) return false;
  return std::ranges::none_of(leading->plan, [&](const Json& planned) {
    return planned.at("name") == learner && planned.at("state") == "Leaving";
  });
}

// A step needs all members.
std::int64_t Trainings::StepNow(const Training& training) {
  if (training.members.empty() || training.complete) return training.step;
  if (!std::ranges::all_of(training.members, [&](const auto& pod) { return cluster_.Runs(pod); })) {
    return training.step;
  }
  const TrainingOptions& options = OptionsOf(training);
  const auto passed = (loop_.Now() - training.since) / options.step_time;
  return std::min(training.step + passed, options.steps);
}

void Trainings::Look(const std::string& uid, Duration most) {
  loop_.PostAfter(Between(random_, 10ms, most), [this, uid] { Resize(uid); });
}

void Trainings::Resize(const std::string& uid) {
  Training& training = trainings_.at(uid);
  Coordinator* coordinator = LeadingCoordinator(uid);
  if (coordinator == nullptr || training.complete) return;
  training.term = coordinator->term;
  std::vector<std::string> members;
  std::vector<std::string> leavers;
  if (coordinator->accepted) {
    for (const auto& [pod, of] : uids_) {
      if (of != uid || !cluster_.Runs(pod)) continue;
      for (const Json& planned : coordinator->plan) {
        if (planned.at("name") != NameOf(pod)) continue;
        if (planned.at("state") == "Wanted") members.push_back(pod);
        if (planned.at("state") == "Leaving") leavers.push_back(pod);
      }
    }
  } else {  // without a plan the coordinator removes only learners that ended
    for (const std::string& member : training.members) {
      if (cluster_.Runs(member)) members.push_back(member);
    }
  }
  const bool all_leave = members.empty() && !leavers.empty();
  training.step = StepNow(training);
  training.since = loop_.Now();
  if (all_leave) training.saved = training.step;  // they write a checkpoint first
  SetMembers(training, std::move(members));
  for (const std::string& leaver : leavers) {
    cluster_.EndProgram(leaver, 0, ExitReport(training, "Drained"));
  }
  AwaitCompletion(uid);
}

void Trainings::SetMembers(Training& training, std::vector<std::string> members) {
  if (members == training.members) return;
  const bool survived = std::ranges::any_of(training.members, [&](const std::string& pod) {
    return std::ranges::contains(members, pod);
  });
  if (!survived) training.step = std::min(training.step, training.saved);
  training.saved =
      std::max(training.saved, training.step / kStepsBetweenCheckpoints * kStepsBetweenCheckpoints);
  training.members = std::move(members);
  ++training.counter;
}

void Trainings::Complete(const std::string& job) {
  for (auto& [uid, training] : trainings_) {
    if (training.job == job && !training.complete) Complete(training);
  }
}

void Trainings::AwaitCompletion(const std::string& uid) {
  Training& training = trainings_.at(uid);
  loop_.Cancel(training.timer);
  if (training.members.empty()) return;
  const TrainingOptions& options = OptionsOf(training);
  const Duration rest = (options.steps - training.step) * options.step_time;
  training.timer = loop_.PostAfter(rest, [this, uid] {
    Training& at_end = trainings_.at(uid);
    if (StepNow(at_end) >= OptionsOf(at_end).steps) Complete(at_end);
  });
}

void Trainings::Complete(Training& training) {
  training.step = StepNow(training);
  training.complete = true;
  for (const std::string& member : std::vector(training.members)) {
    cluster_.EndProgram(member, 0, ExitReport(training, "Completed"));
  }
}

Json Trainings::ExitReport(const Training& training, const char* reason) {
  return {{"reason", reason},
          {"message", "bye"},
          {"step", StepNow(training)},
          {"parametersSha256", training.complete ? std::string(64, 'a') : ""}};
}

Result<kube::HttpResponse> Trainings::Call(const std::string& address,
                                           const kube::HttpRequest& request) {
  const auto pod = cluster_.PodAt(address);
  const auto found = pod ? coordinators_.find(*pod) : coordinators_.end();
  if (found == coordinators_.end()) return Fail(ErrorCode::kUnavailable, "connection refused");
  Coordinator& coordinator = found->second;
  const std::string uid = uids_.at(*pod);
  if (request.method == kube::HttpMethod::kPut) {
    const Json plan = Json::parse(request.body);
    const Stamp stamp{plan.at("leaseTransitions"), plan.at("sequence")};
    const TrainingOptions& options = OptionsOf(trainings_.at(uid));
    if (options.refuses_plans || options.invents_a_leader) {
      ++plans_refused;
      return Answer(409, {{"error", "a greater plan was taken"}});
    }
    if (coordinator.accepted && stamp < *coordinator.accepted) {
      return Answer(409, {{"error", "a greater plan was taken"}});
    }
    const auto [known, is_new] = plans_.try_emplace({*pod, stamp}, request.body);
    if (!is_new && known->second != request.body && on_violation) {
      on_violation(Format("two plans {}.{} for {}", stamp.first, stamp.second, *pod));
    }
    coordinator.accepted = stamp;
    coordinator.plan = plan.at("learners");
    Look(uid, 500ms);
  }
  return Answer(200, Report(uid, coordinator));
}

Json Trainings::Report(const std::string& uid, Coordinator& coordinator) {
  const Training& training = trainings_.at(uid);
  Json members = Json::array();
  Json learners = Json::array();
  for (const std::string& member : training.members) {
    members.push_back(NameOf(member));
    const auto object = server_.Find(member);
    if (object == nullptr) continue;
    learners.push_back({{"name", NameOf(member)},
                        {"podUid", object->at("metadata").at("uid")},
                        {"state", "Member"}});
  }
  const char* state = training.complete          ? "Completed"
                      : training.members.empty() ? "Waiting"
                                                 : "Running";
  Json report = {
      {"term", coordinator.term},
      {"state", state},
      {"membership",
       {{"id", Format("{}.{}", training.term, training.counter)}, {"learners", members}}},
      {"step", StepNow(training)},
      {"totalSteps", OptionsOf(training).steps},
      {"learners", learners}};
  if (OptionsOf(training).flaps) {
    const int answer = ++coordinator.answers;
    report["membership"]["id"] = Format("{}.{}", training.term, training.counter + answer);
    report["membership"]["learners"] = answer % 2 == 0 ? members : Json::array();
    for (int i = 0; i < 100; ++i) {
      report["learners"].push_back(
          {{"name", Format("stranger-{}", i)}, {"podUid", "u"}, {"state", "Member"}});
    }
  }
  if (const auto asked = OptionsOf(training).learners_asked) report["learnersAsked"] = *asked;
  if (training.complete) report["parametersSha256"] = std::string(64, 'a');
  if (coordinator.accepted) {
    report["planAccepted"] = {{"leaseTransitions", coordinator.accepted->first},
                              {"sequence", coordinator.accepted->second}};
  }
  if (OptionsOf(training).invents_a_leader) {
    report["planAccepted"] = {{"leaseTransitions", std::int64_t{1} << 53}, {"sequence", 1}};
  }
  return report;
}

}  // namespace pliant::operator_sim
