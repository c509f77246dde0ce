#include "operator/controller/model/learner_contacts.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using Uids = std::set<std::string>;

TEST(LearnerContacts, RemembersWhichLearnersReachedTheCoordinator) {
  const struct {
    const char* name;
    LearnerContacts before;
    bool named_now;
    bool first_look;
    bool trained;
    Life life;
    bool named;
    bool met;
  } kCases[] = {
      {"it is not named", {}, false, false, true, Life::kRunning, false, false},
      {"it is named", {}, true, false, true, Life::kRunning, true, true},
      {"it was", {.named = {"uid-0"}}, false, false, true, Life::kRunning, true, true},
      {"it was met", {.met = {"uid-0"}}, false, false, true, Life::kRunning, false, true},
      {"an operator that is new", {}, false, true, true, Life::kRunning, false, true},
      {"a job that has not trained", {}, false, true, false, Life::kRunning, false, false},
      {"one that starts", {}, false, true, true, Life::kStarting, false, false},
  };
  for (const auto& c : kCases) {
    JobView view{.job = Shared(AdmittedJob(1)), .learners = {Learner(0, c.life)}};
    if (c.trained) Edit(view.job).status.progress.membership_id = "1.1";
    view.coordinator = c.named_now ? Training({0}) : Training({});
    LearnerContacts contacts = c.before;
    ObserveContacts(view, c.first_look, contacts);
    EXPECT_EQ(contacts.named, c.named ? Uids{"uid-0"} : Uids{}) << c.name;
    EXPECT_EQ(contacts.met, c.met ? Uids{"uid-0"} : Uids{}) << c.name;
    view.learners[0].meta.uid = "another";
    view.coordinator = {};
    ObserveContacts(view, false, contacts);
    EXPECT_EQ(contacts, LearnerContacts{}) << c.name << ", then another pod of its name";
  }
}

TEST(LearnerContacts, RemembersLearnersThatAreGoneAndStillNamed) {
  const struct {
    const char* name;
    LearnerContacts before;
    bool there;
    bool named_now;
    bool gone;
  } kCases[] = {
      {"it was there", {.named = {"uid-0"}}, false, true, true},
      {"it is", {.named = {"uid-0"}}, true, true, false},
      {"it was looked for and not found", {.gone = {"uid-0"}}, false, true, true},
      {"never seen", {}, false, true, false},
      {"it is no longer named", {.gone = {"uid-0"}}, false, false, false},
  };
  for (const auto& c : kCases) {
    JobView view{.job = Shared(AdmittedJob(1))};
    if (c.there) view.learners = {Learner(0, Life::kRunning)};
    view.coordinator = c.named_now ? Training({0}) : Training({});
    LearnerContacts contacts = c.before;
    for (int look = 0; look < 2; ++look) {
      ObserveContacts(view, false, contacts);
      EXPECT_EQ(contacts.gone, c.gone ? Uids{"uid-0"} : Uids{}) << c.name;
    }
  }
}

}  // namespace
}  // namespace pliant::controller
