{{/* Of the operator's pods; empty where nobody is to follow them: monitors and these would read everything twice, and annotations bring
no token. */}}
{{- define "pliant.scrapeAnnotations" -}}
{{- if and (include "pliant.annotatesJobs" .) (not .Values.metrics.authentication.enabled) -}}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end -}}
{{- end -}}

{{/* Whether coordinators and learners have such annotations: "yes", or nothing. */}}
{{- define "pliant.annotatesJobs" -}}
{{- if and .Values.metrics.scrapeAnnotations (not .Values.metrics.monitors.enabled) -}}yes{{- end -}}
{{- end -}}

{{/* The operator's port of /metrics: its name, which is its scheme, and its number. */}}
{{- define "pliant.metricsScheme" -}}
{{- ternary "https" "http" .Values.metrics.authentication.enabled -}}
{{- end -}}
{{- define "pliant.metricsPort" -}}
{{- ternary 8443 8080 .Values.metrics.authentication.enabled -}}
{{- end -}}

{{/* How much a Prometheus takes from a pod of a job: a coordinator has some 150 series, a learner some 20. */}}
{{- define "pliant.jobScrapeLimits" -}}
sampleLimit: 1000
labelLimit: 32
labelNameLengthLimit: 64
labelValueLengthLimit: 256
bodySizeLimit: 1MB
{{- end -}}

{{/* The names of what coordinators and learners serve (docs/metrics.md), and of nothing that the operator does. */}}
{{- define "pliant.jobMetrics" -}}
pliant_(learner|train|checkpoint)_.+|pliant_coordinator_(connections|term|messages_total|refused_messages_total|refused_plans_total)
{{- end -}}
