#include "operator/controller/objects/coordinator_objects.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/controller/model/names.h"
#include "operator/controller/objects/coordinator_template.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kTlsPath = "/etc/pliant/tls";
constexpr std::string_view kStatePath = "/var/lib/pliant";

json Metadata(const api::ObjectMeta& job, const std::string& name, std::string_view role,
              json owner) {
  json labels = JobLabels(job);
  labels[std::string(kLabelRole)] = role;
  return {{"name", name},
          {"namespace", job.name_space},
          {"labels", std::move(labels)},
          {"ownerReferences", json::array({std::move(owner)})}};
}

json Secret(json metadata, json data) {
  return {{"apiVersion", "v1"}, {"kind", "Secret"},  {"metadata", std::move(metadata)},
          {"type", "Opaque"},   {"immutable", true}, {"stringData", std::move(data)}};
}

json TermSelector(const api::ObjectMeta& job, std::int64_t term) {
  return {
      {kLabelJobUid, job.uid}, {kLabelRole, kRoleCoordinator}, {kLabelTerm, std::to_string(term)}};
}

// maxLearners may be raised while the coordinator runs, but the job's number of shards never grows.
int LearnersEver(const api::ElasticTrainingJob& job) {
  const auto& training = job.status.training;
  return training ? training->logical_shards / job.spec.elastic.gpus_per_learner
                  : job.spec.elastic.max_learners;
}

json Container(const api::ElasticTrainingJob& job, std::int64_t term, const std::string& image) {
  const auto value = [](std::string_view name, const std::string& text) {
    return json{{"name", name}, {"value", text}};
  };
  return {
      {"name", kCoordinatorContainer},
      {"image", image},
      {"command", {"/usr/local/bin/pliant-coordinator"}},
      {"env",
       {value("PLIANT_JOB", job.meta.name_space + "/" + job.meta.name),
        value("PLIANT_JOB_UID", job.meta.uid), value("PLIANT_TERM", std::to_string(term)),
        value("PLIANT_TLS_DIR", std::string(kTlsPath)),
        value("PLIANT_STATE_DIR", std::string(kStatePath)),
        value("PLIANT_MAX_LEARNERS", std::to_string(LearnersEver(job)))}},
      {"ports",
       {{{"name", "coordinator"}, {"containerPort", kCoordinatorPort}},
        {{"name", "progress"}, {"containerPort", kCoordinatorPlainPort}},
        {{"name", "probes"}, {"containerPort", kCoordinatorProbePort}}}},
      {"livenessProbe",
       {{"httpGet", {{"path", "/healthz"}, {"port", kCoordinatorProbePort}}},
        {"periodSeconds", 10},
        {"timeoutSeconds", 5},
        {"failureThreshold", 6}}},
      {"resources",
       {{"requests", {{"cpu", "20m"}, {"memory", "64Mi"}}}, {"limits", {{"memory", "256Mi"}}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}}}}},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"volumeMounts",
       {{{"name", "tls"}, {"mountPath", kTlsPath}, {"readOnly", true}},
        {{"name", "state"}, {"mountPath", kStatePath}}}},
  };
}

json Tolerations() {
  json list = json::array();
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    list.push_back({{"key", taint},
                    {"operator", "Exists"},
                    {"effect", "NoExecute"},
                    {"tolerationSeconds", 30}});
  }
  return list;
}

}  // namespace

json ServiceReference(const api::ObjectMeta& job, const std::string& service_uid) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"name", CoordinatorName(job)},
          {"uid", service_uid}};
}

json CoordinatorSecret(const api::ObjectMeta& job, std::int64_t term,
                       const std::string& service_uid, const JobCredentials& credentials) {
  return Secret(Metadata(job, CoordinatorSecretName(job, term), kRoleCoordinator,
                         ServiceReference(job, service_uid)),
                {{"ca.crt", credentials.ca_certificate},
                 {"tls.crt", credentials.certificate},
                 {"tls.key", credentials.key},
                 {"operator-token", credentials.operator_token},
                 {"learner-token", credentials.learner_token}});
}

json LearnerSecret(const api::ObjectMeta& job, std::int64_t term, const std::string& service_uid,
                   const JobCredentials& credentials) {
  return Secret(
      Metadata(job, LearnerSecretName(job, term), kRoleLearner, ServiceReference(job, service_uid)),
      {{"ca.crt", credentials.ca_certificate},
       {"token", credentials.learner_token},
       {"peer-key", credentials.peer_key}});
}

json CoordinatorService(const api::ObjectMeta& job, std::int64_t term) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", Metadata(job, CoordinatorName(job), kRoleCoordinator, OwnerReference(job))},
          {"spec",
           {{"selector", TermSelector(job, term)},
            // A coordinator that is not up yet refuses the connection, and learners retry: that is
            // faster than waiting for a probe.
            {"publishNotReadyAddresses", true},
            {"ports", json::array({{{"name", "coordinator"},
                                    {"port", kCoordinatorPort},
                                    {"targetPort", kCoordinatorPort}}})}}}};
}

json PointServicePatch(std::int64_t term, const std::string& resource_version) {
  return {{"metadata", {{"resourceVersion", resource_version}}},
          {"spec", {{"selector", {{kLabelTerm, std::to_string(term)}}}}}};
}

json CoordinatorPod(const api::ElasticTrainingJob& job, std::int64_t term, const std::string& image,
                    const PodDefaults& defaults) {
  json metadata = Metadata(job.meta, CoordinatorPodName(job.meta, term), kRoleCoordinator,
                           OwnerReference(job.meta));
  metadata["labels"][std::string(kLabelTerm)] = std::to_string(term);
  // The operator replaces an evicted coordinator, but cluster-autoscaler knows only the controllers
  // of Kubernetes: it would keep the node for the sake of this pod.
  metadata["annotations"] = {{"cluster-autoscaler.kubernetes.io/safe-to-evict", "true"}};
  if (defaults.scrape_annotations) {
    metadata["annotations"].update(ScrapeAnnotations(kCoordinatorPlainPort));
  }
  json spec = {
      {"restartPolicy", "Always"},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", 10},
      // No runAsUser: the image has a user, and clusters that assign users to each namespace refuse
      // others.
      {"securityContext",
       {{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"tolerations", Tolerations()},
      {"containers", json::array({Container(job, term, image)})},
      // The files belong to root, and any user of the container must read them. No other user is in
      // this pod.
      {"volumes",
       {{{"name", "tls"},
         {"secret",
          {{"secretName", CoordinatorSecretName(job.meta, term)}, {"defaultMode", 0444}}}},
        {{"name", "state"}, {"emptyDir", json::object()}}}},
  };
  const std::string& priority = defaults.coordinator_priority_class.empty()
                                    ? defaults.priority_class
                                    : defaults.coordinator_priority_class;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  for (const std::string& secret : defaults.coordinator_pull_secrets) {
    spec["imagePullSecrets"].push_back({{"name", secret}});
  }
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", std::move(metadata)},
              {"spec", std::move(spec)}};
  AddCoordinatorTemplate(defaults.coordinator_template, pod);
  return pod;
}

}  // namespace pliant::controller
