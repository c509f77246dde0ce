#include "tests/unit/simulator/data_folder.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

namespace pliant::simulator {

DataFolder::DataFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "pliant-simulator-XXXXXX").string();
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  path_ = pattern;
  std::filesystem::create_directory(path_ / "toy");
  Write("applications.csv",
        "application,epochs,batches,max_local_batch,max_gpus\n"
        "toy,2,8 16,8,3\n");
  Write("toy/placements.csv",
        "placement,local_bsz,step_time,sync_time\n"
        "1,4,0.5,0\n"
        "1,16,2,0.25\n"
        "12,4,1,0.5\n");
  Write("toy/scalability.csv",
        "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
        "3,3,4,4,1\n");
  Write("toy/validation-8.csv",
        "progress,iteration,metric,grad_sqr,grad_var\n"
        "10.5,10,0.1,1,2\n"
        "20,20,0.2,0.0,2\n");
  Write("toy/validation-16.csv",
        "progress,iteration,metric,grad_sqr,grad_var\n"
        "11,6,0.1,1,2\n"
        "21,12,0.2,3,4\n"
        "31,18,0.2,3,4\n");
}

DataFolder::~DataFolder() { std::filesystem::remove_all(path_); }

void DataFolder::Write(std::string_view file, std::string_view content) const {
  std::ofstream(path_ / file) << content;
}

void DataFolder::Remove(std::string_view file) const { std::filesystem::remove(path_ / file); }

std::string DataFolder::WithoutFolder(std::string message) const {
  const std::string folder = path_.string() + "/";
  while (message.find(folder) != std::string::npos) {
    message.erase(message.find(folder), folder.size());
  }
  return message;
}

}  // namespace pliant::simulator
