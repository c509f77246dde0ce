#pragma once

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "base/event_loop.h"
#include "tests/kube/memory_api_server.h"

namespace pliant::operator_sim {

using Json = nlohmann::json;
using Random = std::mt19937_64;

// Returns a duration in [least, most].
Duration Between(Random& random, Duration least, Duration most);
bool Chance(Random& random, double probability);

std::string LabelOf(const Json& object, std::string_view label);
bool IsLearner(const Json& pod);
bool IsPlaceholder(const Json& pod);
// Whether it takes GPUs from learners: a placeholder, or a pod of another workload.
bool TakesGpus(const Json& pod);
int RequestedGpus(const Json& pod);
// Whether it is of a DaemonSet, which pins it to its node.
bool IsDaemon(const Json& pod);
// Whether the scheduler has found no node for it.
bool IsUnschedulable(const Json& pod);
bool IsGated(const Json& pod);
bool HasEnded(const Json& pod);
// The node on which the pod runs, or the only one on which it may run; "" if it is not decided.
std::string NodeOf(const Json& pod);

// The components that act on pods: the scheduler, kubelets, the node controller and the garbage
// collector. They see the API server's objects a little late, and change them as the real ones do.
class Cluster {
 public:
  // All arguments outlive it.
  Cluster(EventLoop& loop, kube::MemoryApiServer& server, Random& random);

  void AddNode(const std::string& name, int gpus);
  // Everything on the node dies at once; other components notice later.
  void PowerOff(const std::string& name);
  void PowerOn(const std::string& name);
  void RemoveNode(const std::string& name);  // removes the object; PowerOn adds it again
  void SetCordoned(const std::string& name, bool cordoned);
  void SetUnhealthyGpus(const std::string& name, int count);
  int GpusOf(const std::string& name) const { return nodes_.at(name).gpus; }
  std::vector<std::string> NodeNames() const;

  // The main program of a pod ends, if it runs.
  void EndProgram(const std::string& pod, int exit_code, const Json& last_words,
                  const std::string& reason = "");
  // Ends a container that restarts, as a coordinator's does.
  void CrashProgram(const std::string& pod);
  bool Runs(const std::string& pod) const;
  std::string AddressOf(const std::string& pod) const;
  std::optional<std::string> PodAt(const std::string& address) const;

  void OnChange(const std::string& path, const kube::MemoryApiServer::Object& object);

  // Called when a program has started, receives SIGTERM, or has ended.
  std::function<void(const std::string& pod)> on_start;
  std::function<void(const std::string& pod)> on_stop_signal;
  std::function<void(const std::string& pod)> on_end;
  // Whether the kubelet refuses to start the next learner.
  std::function<bool()> refuse_start = [] { return false; };
  bool has_images = true;  // whether kubelets can pull them
  // Whether the image of this pod can be pulled.
  std::function<bool(const Json& pod)> has_image = [](const Json&) { return true; };

 private:
  struct Node {
    int gpus = 0;
    int unhealthy = 0;
    bool on = true;
    bool known = true;  // its Node object exists
    int power_cycles = 0;
  };
  struct Program {
    std::string uid;
    std::string node;
    std::string address;
    bool alive = false;
    bool signalled = false;
    bool pulling = false;
  };

  void Look(const std::string& pod, Duration most);
  void Sync(const std::string& path);
  void Bind(const std::string& path, const Json& pod);
  void Start(const std::string& path, const Json& pod);
  void Pull(const std::string& path, const std::string& uid);
  void SetRunning(const std::string& path, const std::string& uid);
  void Terminate(const std::string& path, const Json& pod);
  void Fail(const std::string& path, const std::string& reason, const std::string& message);
  void KillProgram(const std::string& path);
  void WriteNode(const std::string& name);
  void EvictFrom(const std::string& node);
  void MarkUnschedulable(const std::string& path, const Json& pod);
  // By pods of one kind that have not ended.
  int GpusTakenOn(const std::string& node, bool (*is_of_kind)(const Json& pod)) const;
  bool HasRoom(const std::string& node, const Json& pod) const;

  EventLoop& loop_;
  kube::MemoryApiServer& server_;
  Random& random_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Program> programs_;  // by the path of the pod
  int addresses_ = 0;
};

}  // namespace pliant::operator_sim
