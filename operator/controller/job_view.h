#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/controller/progress.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

using api::WallTime;

// The API server's answer to CheckTemplate.
struct TemplateCheck {
  std::int64_t generation = 0;  // of the job that was checked
  bool accepted = false;
  bool unanswered = false;  // the check itself failed: nothing is known of the template
  std::string message;      // the server's own sentence, if it refused or failed
  int refusals = 0;         // in a row
  WallTime again_at;        // not to be asked before
  bool operator==(const TemplateCheck&) const = default;
};

// What a learner asks of its node as the API server would admit it, or has.
struct AdmittedNeeds {
  std::string template_hash;  // of the template that it was made of
  std::shared_ptr<const planner::PodNeeds> needs;
  bool operator==(const AdmittedNeeds&) const = default;
};

// A node on which this job's learners failed.
struct NodeStrikes {
  int count = 0;
  WallTime avoid_until;
  bool operator==(const NodeStrikes&) const = default;
};

// Why a pod's volumes cannot be mounted.
struct MountCause {
  std::string text;  // the kubelet's own; empty: it has not said
  WallTime asked;
  bool operator==(const MountCause&) const = default;
};

// Granted learners that could not be made, or let through their gates, because the API server
// refused something.
struct RefusedGrants {
  WallTime since;               // without success in between
  std::set<std::string> gates;  // of these learners they could not be opened, if there are any
  bool operator==(const RefusedGrants&) const = default;
};

// What this program wrote to status last.
struct Told {
  std::optional<WallTime> at;                 // nothing: nothing yet
  std::optional<planner::ReasonCode> reason;  // of the sentence in status
  bool operator==(const Told&) const = default;
};

// How often what a coordinator says goes to status. Twice a second at most, but for bursts.
struct WriteBudget {
  double writes = 60;          // that are left
  std::optional<WallTime> at;  // then
  bool operator==(const WriteBudget&) const = default;
};

// What is known of a job beyond its objects. It is lost when the operator restarts: everything here
// can be found out again, or only costs time.
struct JobMemory {
  std::map<std::string, WallTime> starting_since;  // when a learner's gate was opened, by pod name
  std::map<std::string, WallTime> leaving_since;   // when it was decided that it goes, by pod name
  // When it was decided of a learner that could not be told, by pod name.
  std::map<std::string, WallTime> untold_since;
  std::map<std::string, NodeStrikes> nodes;
  std::set<std::string> ends_seen;  // uids of ended pods that struck their node, or did not
  // Uids of learner pods that exist and that the job's coordinator has named: it has spoken to
  // them.
  std::set<std::string> named;
  // The same, and those that ran when this program saw the job first, which had trained before.
  std::set<std::string> met;
  // Uids of learners that the coordinator still names, and that are known to be gone.
  std::set<std::string> gone;
  std::optional<WallTime> looked_at;  // when the server was last asked about pods
  std::optional<planner::DemandCap> cap;
  std::optional<TemplateCheck> template_check;
  std::optional<AdmittedNeeds> admitted_needs;
  std::string refusal;      // why the API server would not do what was asked last; empty: it did
  bool unanswered = false;  // it did not say so, nor anything else
  std::optional<RefusedGrants> refused_grants;
  std::map<std::string, MountCause> mount_causes;  // by pod name
  // Times in status that lay ahead when they were read first, as those of a leader whose clock was
  // wrong: by what is written, when that was.
  std::map<WallTime, WallTime> times_ahead;
  // The lowest committed step that was seen since the newest failure was counted: it falls when the
  // job is restored from a checkpoint.
  std::optional<std::int64_t> lowest_step;
  std::optional<WallTime> below_minimum_since;
  std::optional<WallTime> waiting_since;  // for its first GPU; nothing: it does not
  int coordinator_tries = 0;              // since one could be reached
  WallTime coordinator_not_before;
  Told told;
  std::optional<WallTime> figures_due;  // when progress is to go to status next
  WriteBudget write_budget;
  // What the program asked for, where the cluster's definition of the resource is older than this
  // operator: it was written to status and came back without.
  std::optional<int> learners_asked_dropped;
  double gpu_seconds = 0;  // attained until then:
  std::optional<WallTime> gpu_seconds_until;
  std::int64_t gpus_used = 0;  // since then
  bool operator==(const JobMemory&) const = default;
};

// What is heard of the job's coordinator.
struct CoordinatorView {
  std::shared_ptr<const Progress> progress;  // the newest of the present term; null: none yet
  std::optional<WallTime> silent_since;      // does not answer since then; nothing: it does
  bool reachable = false;                    // answered the last call
};

// All that is known of one job at an instant. There may be thousands that wait: what others keep
// too is shared with them, and what only a job that runs has takes a pointer.
struct JobView {
  std::shared_ptr<const api::ElasticTrainingJob> job;  // never null
  // Why its newest version is not understood: it stays what it was before. Empty: it is understood.
  std::string unreadable;
  // Of one learner, by the newest template that could be read: those that live were made of that
  // one, or of an earlier one. Null: there was none.
  std::shared_ptr<const planner::PodNeeds> needs;
  std::vector<api::Pod> learners;               // by number, ended ones too
  std::vector<api::Pod> coordinators;           // by term
  std::shared_ptr<const api::Service> service;  // null: there is none
  CoordinatorView coordinator;
  JobMemory memory;
  // When what was written of a pod or the Service is overdue: nothing else tells of that.
  std::optional<WallTime> overdue_at;
  // Names of pods that the store has not shown for long as they were written: the server is to be
  // asked.
  std::vector<std::string> overdue_pods;
};

bool IsGated(const api::Pod& learner);
// The answer for the job's template as it is now; null: that has not been checked. It points into
// `view`.
const TemplateCheck* CurrentTemplateCheck(const JobView& view);
// Whether its program runs.
bool IsRunning(const api::Pod& learner);
// Whether it also has spoken to the job's coordinator, and so may be a part of the training.
bool HasStarted(const JobView& view, const api::Pod& learner);
// Where it runs or is to run; "" if that is not known.
std::string NodeOf(const api::Pod& pod);
// Of times at which something is to be looked at again; nothing: never.
void KeepEarliest(const std::optional<WallTime>& time, std::optional<WallTime>& earliest);
// On how many learners its program wants to train; nothing: on as many as there are.
std::optional<int> LearnersAsked(const JobView& view);
bool HasLiveLearners(const JobView& view);
// Of one learner of its present template: as the API server admits it if that is known, else as
// the template says. Null: neither is known.
std::shared_ptr<const planner::PodNeeds> NeedsOfLearner(const JobView& view);
// Whether only the template is known of what its learners will need.
bool NeedsAreGuessed(const JobView& view);
// Whether it was admitted, with the template that it has now.
bool IsAdmitted(const api::JobSpec& spec, const api::JobStatus& status);
// When it was, what the job's status tells; never later than when it was read first.
std::optional<WallTime> TimeOf(const JobView& view, const std::optional<WallTime>& in_status);
// The last step that is known to be committed.
std::int64_t CommittedStep(const JobView& view);

}  // namespace pliant::controller
