#include "operator/planner/placement.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace pliant::planner {
namespace {

// The room that the nodes of one domain have for a job's learners.
struct DomainRoom {
  NodeIndex node = 0;      // one of the nodes
  std::int64_t slots = 0;  // learners that fit
  std::int64_t free = 0;   // of these, the ones that can start at once
};

// Chooses the nodes of one job's new learners.
class Placing {
 public:
  Placing(const Model& model, Assignment& placed, JobIndex job)
      : model_(model), placed_(placed), job_(job), last_level_(model.topology.last_level()) {}

  // Places `wanted` learners, all or as many as fit.
  void Run(LearnerCount wanted) {
    const std::vector<NodeIndex>& nodes = placed_.FitOf(job_).nodes;
    if (model_.jobs[job_].view->placement == PlacementPolicy::kSpread) {
      Spread(nodes, wanted);
    } else if (!PackAtHome(nodes, wanted)) {
      Pack(nodes, 0, wanted);
    }
  }

 private:
  // Learners of the job in the domains of a node, the widest domain first.
  using Neighbours = std::array<LearnerCount, kMaxTopologyKeys + 1>;

  int DomainOf(NodeIndex node, int level) const { return model_.topology.DomainOf(node, level); }

  // Returns those of `nodes` that are in the domain of `node`.
  std::vector<NodeIndex> Near(NodeIndex node, int level,
                              const std::vector<NodeIndex>& nodes) const {
    std::vector<NodeIndex> near;
    std::ranges::copy_if(nodes, std::back_inserter(near), [&](NodeIndex each) {
      return DomainOf(each, level) == DomainOf(node, level);
    });
    return near;
  }

  bool HasNeighbours(NodeIndex node, int level) const {
    return std::ranges::any_of(placed_.ClaimsOf(job_), [&](const Claim& claim) {
      return DomainOf(claim.node, level) == DomainOf(node, level);
    });
  }

  // Packs the learners into the narrowest domain that has all of the job's others, if they fit
  // there.
  bool PackAtHome(const std::vector<NodeIndex>& nodes, LearnerCount wanted) {
    const std::span<const Claim> claims = placed_.ClaimsOf(job_);
    if (claims.empty()) return false;
    for (int level = last_level_ - 1; level >= 0; --level) {
      const NodeIndex home = claims.front().node;
      const bool has_all = std::ranges::all_of(claims, [&](const Claim& claim) {
        return DomainOf(claim.node, level) == DomainOf(home, level);
      });
      if (!has_all) continue;
      const std::vector<NodeIndex> there = Near(home, level, nodes);
      std::int64_t slots = 0;
      for (const NodeIndex node : there) slots += placed_.SlotsOn(job_, node);
      if (slots < wanted) continue;
      Pack(there, level + 1, wanted);
      return true;
    }
    return false;
  }

  // Packs the learners on `nodes`, which are in one domain of the level above `level`.
  void Pack(const std::vector<NodeIndex>& nodes, int level, LearnerCount wanted) {
    while (wanted > 0) {
      std::optional<DomainRoom> best;
      int at = last_level_;
      for (; at >= level; --at) {
        best = BestDomain(nodes, at, wanted);
        if (!best || best->slots >= wanted) break;
      }
      if (!best) return;
      at = std::max(at, level);  // if no domain takes all: the widest one that takes most
      const auto share = static_cast<LearnerCount>(std::min<std::int64_t>(best->slots, wanted));
      if (at < last_level_) {
        Pack(Near(best->node, at, nodes), at + 1, share);
      } else if (!Fill(best->node, share)) {
        return;
      }
      wanted -= share;
    }
  }

  bool Fill(NodeIndex node, LearnerCount wanted) {
    for (; wanted > 0 && placed_.AddOn(job_, node); --wanted) {
    }
    return wanted == 0;
  }

  // The domain of the level for `wanted` more learners; nullopt: there is no room at all.
  std::optional<DomainRoom> BestDomain(const std::vector<NodeIndex>& nodes, int level,
                                       LearnerCount wanted) const {
    std::vector<DomainRoom> rooms(model_.nodes.size());  // by domain: there are no more
    for (const NodeIndex node : nodes) {
      const std::int64_t slots = placed_.SlotsOn(job_, node);
      if (slots == 0) continue;
      DomainRoom& room = rooms[DomainOf(node, level)];
      room.node = node;
      room.slots += slots;
      room.free += placed_.FreeSlotsOn(job_, node);
    }
    std::optional<DomainRoom> best;
    std::tuple<bool, bool, bool, std::int64_t, std::int64_t> best_score;
    for (const DomainRoom& room : rooms) {
      if (room.slots == 0) continue;
      // In order of preference: all of them can start at once; all of them fit; the job already has
      // learners there; then the domain that they fill best or, if none takes them all, the one
      // that takes most.
      const bool all_fit = room.slots >= wanted;
      const auto score = std::tuple(room.free >= wanted, all_fit, HasNeighbours(room.node, level),
                                    all_fit ? -room.slots : room.slots, room.free);
      if (best && score <= best_score) continue;
      best = room;
      best_score = score;
    }
    return best;
  }

  // Each learner goes to the widest domain with the fewest of the job, within it to the next
  // narrower one, and so on; among equal nodes, to one where it can start at once.
  void Spread(const std::vector<NodeIndex>& nodes, LearnerCount wanted) {
    // Learners of the job by level and domain.
    std::vector learners(last_level_ + 1, std::vector<LearnerCount>(model_.nodes.size()));
    const auto count = [&](NodeIndex node, LearnerCount more) {
      for (int level = 0; level <= last_level_; ++level) {
        learners[level][DomainOf(node, level)] += more;
      }
    };
    for (const Claim& claim : placed_.ClaimsOf(job_)) count(claim.node, claim.learners);
    for (; wanted > 0; --wanted) {
      std::optional<NodeIndex> best;
      std::tuple<Neighbours, bool, std::int64_t> best_score;
      for (const NodeIndex node : nodes) {
        const std::int64_t slots = placed_.SlotsOn(job_, node);
        if (slots == 0) continue;
        Neighbours neighbours{};
        for (int level = 0; level <= last_level_; ++level) {
          neighbours[level] = learners[level][DomainOf(node, level)];
        }
        const auto score = std::tuple(neighbours, placed_.FreeSlotsOn(job_, node) == 0, -slots);
        if (best && score >= best_score) continue;
        best = node;
        best_score = score;
      }
      if (!best || !placed_.AddOn(job_, *best)) return;
      count(*best, 1);
    }
  }

  const Model& model_;
  Assignment& placed_;
  const JobIndex job_;
  const int last_level_;
};

}  // namespace

Assignment Place(const Model& model, const Sharing& sharing) {
  Assignment placed(model);
  for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
    placed.UseFit(job, sharing.assignment.FitIndexOf(job));
  }
  const auto missing = [&](JobIndex job) {
    return sharing.shares[job].learners - placed.LearnersOf(job);
  };
  // 1. Learners that hold their GPUs, then gated ones.
  for (const bool gated : {false, true}) {
    for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
      for (const LearnerView* learner : model.jobs[job].held) {
        if (missing(job) <= 0) break;
        if ((learner->state == LearnerState::kGated) == gated) {
          placed.AddOn(job, model.NodeNamed(learner->node));
        }
      }
    }
  }
  // 2. New learners, the largest groups first: they are the hardest to keep together.
  std::vector<std::pair<LearnerCount, JobIndex>> groups;
  for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
    if (missing(job) > 0) groups.emplace_back(-missing(job), job);
  }
  std::ranges::sort(groups);
  for (const auto& [size, job] : groups) {
    Placing(model, placed, job).Run(-size);
    // If needs differ in CPU or memory, a tighter placement may not exist; the sharing's own is
    // always valid.
    if (missing(job) > 0 && !placed.Add(job, missing(job))) return sharing.assignment;
  }
  return placed;
}

}  // namespace pliant::planner
