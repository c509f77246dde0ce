{{/* The name of everything that belongs to one release: "pliant" for a release of that name. */}}
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

{{/* What the operator does with the jobs of a namespace, or of all. */}}
{{- define "pliant.jobRules" -}}
# Deleted when their ttlSecondsAfterFinished are over.
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs]
  verbs: [list, watch, delete]
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs/status]
  verbs: [patch]
# To be named as the owner of pods, which a job's deletion then waits for.
- apiGroups: [pliant.dev]
  resources: [elastictrainingjobs/finalizers]
  verbs: [update]
# Coordinators and learners; and, to know which GPUs are taken, everybody's pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# How many GPUs a namespace's jobs may hold together.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
# The coordinators' addresses. They go when their job has ended, and take its Secrets and policies with them.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
# A job's keys are made anew with each coordinator, in Secrets of names of their own: none is read, or written twice.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- if .Values.networkPolicy.jobs.enabled }}
# The policies of jobs' pods are made anew with them.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  # Why a volume cannot be mounted stands in a pod's events only.
  verbs: [create, patch, list]
{{- end -}}

{{- define "pliant.operatorSubject" -}}
- kind: ServiceAccount
  name: {{ include "pliant.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
