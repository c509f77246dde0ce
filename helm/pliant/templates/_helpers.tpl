{{/* The name of all objects of one release: "pliant" for a release of that name. */}}
{{- define "pliant.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pliant.image" -}}
{{- $name := .Values.image.repository -}}
{{- with .Values.image.registry -}}
{{- $name = printf "%s/%s" . $name -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "pliant.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "pliant.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "pliant.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "pliant.labels" -}}
{{ include "pliant.selectorLabels" . }}
app.kubernetes.io/part-of: pliant
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The operator's rights on the jobs of one namespace, or of all. */}}
{{- define "pliant.jobRules" -}}
# get: a large template is fetched when a pod is made, and a job whose pods are orphaned is looked for. Jobs are deleted after their
# ttlSecondsAfterFinished.
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs/status]
  verbs: [patch]
# Needed to set the job as a pod's owner such that its deletion waits for the pod (blockOwnerDeletion).
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs/finalizers]
  verbs: [update]
# Coordinators and learners; and all other pods, to know which GPUs are in use.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# To know how many GPUs a namespace's jobs may hold together.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
# Services of coordinators. They are deleted when their job has ended, and with them the Secrets and policies that they own.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
# Each coordinator gets new keys in a Secret with a new name: no Secret of a job is read, or written twice.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- if .Values.networkPolicy.jobs.enabled }}
# Network policies of jobs' pods. They are updated with each new coordinator.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  # list: only a pod's events say why a volume cannot be mounted.
  verbs: [create, patch, list]
{{- end -}}

{{- define "pliant.learnerPriorityClass" -}}
{{- if eq (default "" .Values.preset) "fill" -}}
{create: true, name: pliant-fill, value: -20}
{{- else -}}
{{- toYaml .Values.learnerPriorityClass -}}
{{- end -}}
{{- end -}}

{{- define "pliant.operatorSubject" -}}
- kind: ServiceAccount
  name: {{ include "pliant.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
