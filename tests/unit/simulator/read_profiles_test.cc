#include "simulator/model/read_profiles.h"

#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "simulator/model/job_model.h"
#include "tests/unit/simulator/data_folder.h"

namespace pliant::simulator {
namespace {

TEST(ReadProfilesTest, AllTablesAreUsed) {
  const DataFolder folder;
  folder.Write("extra_points.csv",
               "application,num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
               "toy,4,9,4,7,3\n");
  const auto profiles = ReadProfiles(folder.path());
  ASSERT_TRUE(profiles) << profiles.error();
  ASSERT_EQ(profiles->size(), 1);
  const Profile& toy = (*profiles)[0];
  EXPECT_EQ(toy.application(), "toy");
  EXPECT_EQ(toy.epochs(), 2);
  EXPECT_EQ(toy.min_batch(), 8);
  EXPECT_EQ(toy.max_batch(), 16);
  EXPECT_EQ(toy.min_local(), 4);
  EXPECT_EQ(toy.max_local(), 8);
  EXPECT_EQ(toy.MaxLearners(16), 3);
  EXPECT_EQ(toy.ProgressBound(0), 10.5);
  EXPECT_EQ(toy.ProgressBound(1), 20);
  EXPECT_EQ(toy.Iterations(1, 16), 12);
  EXPECT_EQ(toy.Gradients(1, 12), (GradientStats{.square = 1.5, .variance = 3}));
  EXPECT_EQ(toy.step_times().At({1}, 10), (StepTime{.step = 1.25, .sync = 0.125}));
  EXPECT_EQ(toy.step_times().At({2, 1}, 4), (StepTime{.step = 1, .sync = 0.5}));
  EXPECT_EQ(toy.step_times().At({1, 1, 1}, 4), (StepTime{.step = 4, .sync = 1}));
  EXPECT_EQ(toy.step_times().At({2, 2, 2, 3}, 4), (StepTime{.step = 7, .sync = 3}));
}

TEST(ReadProfilesTest, WithoutALimitThePlacementsHaveTheLargestLocalBatch) {
  const DataFolder folder;
  folder.Write("applications.csv",
               "application,epochs,batches,max_local_batch,max_gpus\ntoy,2,8 16,,\n");
  const auto profiles = ReadProfiles(folder.path());
  ASSERT_TRUE(profiles) << profiles.error();
  EXPECT_EQ((*profiles)[0].max_local(), 16);
  EXPECT_EQ((*profiles)[0].MaxLearners(16), 4);
}

struct Spoilt {
  std::string file;
  std::string content;
  std::string error;
};

constexpr const char* kList = "application,epochs,batches,max_local_batch,max_gpus\n";
constexpr const char* kPlacements = "placement,local_bsz,step_time,sync_time\n";
constexpr const char* kSizes = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
constexpr const char* kExtras =
    "application,num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
constexpr const char* kEpochs = "progress,iteration,metric,grad_sqr,grad_var\n";

void ExpectError(const Spoilt& each) {
  const DataFolder folder;
  folder.Write(each.file, each.content);
  const auto profiles = ReadProfiles(folder.path());
  ASSERT_FALSE(profiles) << each.error;
  EXPECT_EQ(folder.WithoutFolder(profiles.error().message), each.file + each.error);
}

TEST(ReadProfilesTest, ErrorsOfTheList) {
  const std::string list = kList;
  const std::string write_rising = "; write rising batches, for example 12 24 48";
  const Spoilt kCases[] = {
      {"applications.csv", list, ":1: there are no rows; add a header and at least one row"},
      {"applications.csv", "application,epochs,batches,max_local_batch\ntoy,2,8,8\n",
       ":1: the column 'max_gpus' is missing; add it"},
      {"applications.csv", list + "toy,0,8 16,,\n",
       ":2: 'epochs' is 0; write a whole number from 1 to 100000"},
      {"applications.csv", list + "toy,2,,,\n", ":2: 'batches' is (empty)" + write_rising},
      {"applications.csv", list + "toy,2,16 8,,\n", ":2: 'batches' is 16 8" + write_rising},
      {"applications.csv", list + "toy,2,8 8,,\n", ":2: 'batches' is 8 8" + write_rising},
      {"applications.csv", list + "toy,2,8  16,,\n", ":2: 'batches' is 8  16" + write_rising},
      {"applications.csv", list + "toy,2,8 x,,\n", ":2: 'batches' is 8 x" + write_rising},
      {"applications.csv", list + "toy,2,2 8,,\n",
       ":2: the smallest of 'batches' is 2, and toy/placements.csv begins at 4 samples a learner; "
       "remove smaller batches"},
      {"applications.csv", list + "toy,2,8 16,17,\n",
       ":2: 'max_local_batch' is 17, and toy/placements.csv has 4 to 16; choose one of these, or "
       "none"},
      {"applications.csv", list + "toy,2,8 16,3,\n",
       ":2: 'max_local_batch' is 3, and toy/placements.csv has 4 to 16; choose one of these, or "
       "none"},
      {"applications.csv", list + "toy,2,8 16,,0\n",
       ":2: 'max_gpus' is 0; write a whole number from 1 to 65536"},
      {"applications.csv", list + "toy,2,8 16,,\ntoy,2,8 16,,\n",
       ":3: the application toy stands there twice; remove one"},
      {"applications.csv", list + "../toy,2,8 16,,\n",
       ":2: 'application' is not a name: ../toy; write 1 to 255 letters, digits and -_."},
  };
  for (const Spoilt& each : kCases) ExpectError(each);
}

TEST(ReadProfilesTest, ErrorsOfStepTimes) {
  const std::string placements = kPlacements;
  const std::string sizes = kSizes;
  const std::string extras = kExtras;
  const Spoilt kCases[] = {
      {"toy/placements.csv", placements,
       ":1: there are no rows; add a header and at least one row"},
      {"toy/placements.csv", placements + "1,4,0,0\n",
       ":2: 'step_time' is 0; write a number from 1e-09 to 1e+06"},
      {"toy/placements.csv", placements + "1,4,-1,0\n",
       ":2: 'step_time' is -1; write a number from 1e-09 to 1e+06"},
      {"toy/placements.csv", placements + "1,4,1,-0.5\n",
       ":2: 'sync_time' is -0.5; write a number from 0 to 1e+06"},
      {"toy/placements.csv", placements + "1,4,1,1.5\n",
       ":2: 'sync_time' 1.5 exceeds 'step_time' 1; it is a part of it"},
      {"toy/placements.csv", placements + "1,4,fast,0\n",
       ":2: 'step_time' is not a number: fast; write one, for example 0.25"},
      {"toy/placements.csv", placements + "1,4.5,1,0\n",
       ":2: 'local_bsz' is not a whole number: 4.5; write one from 1 to 10000000"},
      {"toy/placements.csv", placements + "1,8,1,0\n1,4,1,0\n",
       ":3: 'local_bsz' does not rise: 4 after 8 of the same placement; sort the rows, and remove "
       "repeated ones"},
      {"toy/placements.csv", placements + "21,4,1,0\n",
       ":2: 'placement' 21 is not the least of its rotations; write that"},
      {"toy/placements.csv", placements + "10,4,1,0\n",
       ":2: 'placement' is 10; write the learners of each node as one digit, at most 64 nodes"},
      {"toy/placements.csv", placements + ",4,1,0\n",
       ":2: 'placement' is empty; write one, for example 4"},
      {"toy/scalability.csv", sizes, ":1: there are no rows; add a header and at least one row"},
      {"toy/scalability.csv", sizes + "3,2,4,1,0\n",
       ":2: 'num_replicas' is 2; write a whole number from 3 to 65536"},
      {"toy/scalability.csv", sizes + "2,3,4,1,0\n2,3,4,2,0\n",
       ":3: an earlier row has the same nodes, replicas and batch; remove one"},
      {"extra_points.csv", extras + "toy,2,3,4,1,0\ntoy,2,3,4,2,0\n",
       ":3: an earlier row has the same nodes, replicas and batch; remove one"},
      {"extra_points.csv", extras + "bert,2,3,4,1,0\n",
       ": the application bert is not in applications.csv; add it there, or remove its points"},
  };
  for (const Spoilt& each : kCases) ExpectError(each);
}

TEST(ReadProfilesTest, ErrorsOfTrainings) {
  const std::string epochs = kEpochs;
  const std::string no_rise =
      "'progress' or 'iteration' does not rise; both count from the start of the training, so each "
      "row exceeds the one before";
  const Spoilt kCases[] = {
      {"toy/validation-8.csv", "", ":1: there are no rows; add a header and at least one row"},
      {"toy/validation-8.csv", "progress,iteration,metric,grad_sqr\n1,1,0,1\n",
       ":1: the column 'grad_var' is missing; add it"},
      {"toy/validation-8.csv", epochs + "9,9,0,1,1\n8,10,0,1,1\n", ":3: " + no_rise},
      {"toy/validation-8.csv", epochs + "9,9,0,1,1\n10,9,0,1,1\n", ":3: " + no_rise},
      {"toy/validation-8.csv", epochs + "0,9,0,1,1\n10,10,0,1,1\n", ":2: " + no_rise},
      {"toy/validation-8.csv", epochs + "9,9,0,1,1\n",
       ":2: the table ends after 1 epochs of 2; add rows, or lower 'epochs' in applications.csv"},
      {"toy/validation-8.csv", epochs + "9,9,0,-1,1\n10,10,0,1,1\n",
       ":2: 'grad_sqr' is -1; write a number from 0 to 1e+30"},
      {"toy/validation-8.csv", epochs + "9,9,0,1,inf\n10,10,0,1,1\n",
       ":2: 'grad_var' is inf; write a number from 0 to 1e+30"},
  };
  for (const Spoilt& each : kCases) ExpectError(each);
}

TEST(ReadProfilesTest, AMissingFileIsNamed) {
  const std::string add = " is missing; add it, or choose another path";
  const std::pair<std::string, std::string> kCases[] = {
      {"applications.csv", add},
      {"toy/placements.csv", add},
      {"toy/scalability.csv", add},
      {"toy/validation-16.csv",
       " is missing; add it, or remove 16 from 'batches' of toy in applications.csv"},
  };
  for (const auto& [file, error] : kCases) {
    const DataFolder folder;
    folder.Remove(file);
    const auto profiles = ReadProfiles(folder.path());
    ASSERT_FALSE(profiles) << file;
    EXPECT_EQ(folder.WithoutFolder(profiles.error().message), file + error);
  }
}

TEST(ReadProfilesTest, ThePublishedDataSetCanBeSimulated) {
  const auto profiles =
      ReadProfiles(std::filesystem::path(PLIANT_SOURCE_DIR) / "tests/data/pollux");
  ASSERT_TRUE(profiles) << profiles.error();
  EXPECT_EQ(profiles->Names(), "bert, cifar10, deepspeech2, imagenet, ncf, yolov3");
  const Profile& yolov3 = (*profiles)[*profiles->Find("yolov3")];
  EXPECT_EQ(yolov3.max_local(), 8);
  EXPECT_EQ(yolov3.epochs(), 50);
  const Profile& ncf = (*profiles)[*profiles->Find("ncf")];
  EXPECT_EQ(ncf.MaxLearners(32'768), 1);
  // The squared mean of the gradient is 0 there.
  const Profile& deepspeech2 = (*profiles)[*profiles->Find("deepspeech2")];
  const GradientStats only_noise = deepspeech2.Gradients(56, 20);
  EXPECT_EQ(only_noise.square, 0);
  EXPECT_EQ(NoiseScale(only_noise), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Gain(only_noise, 1), 1);
}

TEST(ReadProfilesTest, GoodputIsPositiveForEverySizeBatchAndEpoch) {
  const auto profiles =
      ReadProfiles(std::filesystem::path(PLIANT_SOURCE_DIR) / "tests/data/pollux");
  ASSERT_TRUE(profiles) << profiles.error();
  for (std::size_t index = 0; index < profiles->size(); ++index) {
    const Profile& profile = (*profiles)[index];
    for (int batch = profile.min_batch(); batch <= profile.max_batch(); batch *= 3) {
      for (int learners = 1; learners <= 80; learners += 7) {
        const BatchSplit split = SplitBatch(profile, batch, learners);
        for (int epoch = 0; epoch < profile.epochs(); epoch += 7) {
          const double goodput = Goodput(profile, epoch, Packed(learners, 4), split);
          ASSERT_GT(goodput, 0) << profile.application() << " " << batch << " " << learners;
          ASSERT_LT(goodput, 1e6) << profile.application() << " " << batch << " " << learners;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pliant::simulator
