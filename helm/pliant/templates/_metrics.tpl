{{/* Scrape annotations of the operator's pods; empty with monitors, which would scrape everything a second time, and with authentication,
because annotations carry no token. */}}
{{- define "pliant.scrapeAnnotations" -}}
{{- if and (include "pliant.annotatesJobs" .) (not .Values.metrics.authentication.enabled) -}}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end -}}
{{- end -}}

{{/* Whether coordinators and learners have scrape annotations: "yes", or nothing. */}}
{{- define "pliant.annotatesJobs" -}}
{{- if and .Values.metrics.scrapeAnnotations (not .Values.metrics.monitors.enabled) -}}yes{{- end -}}
{{- end -}}

{{/* The operator's port for /metrics: its name, which is also its scheme, and its number. */}}
{{- define "pliant.metricsScheme" -}}
{{- ternary "https" "http" .Values.metrics.authentication.enabled -}}
{{- end -}}
{{- define "pliant.metricsPort" -}}
{{- ternary 8443 8080 .Values.metrics.authentication.enabled -}}
{{- end -}}

{{/* Scrape limits for a pod of a job: a coordinator has about 150 series, a learner about 20. */}}
{{- define "pliant.jobScrapeLimits" -}}
sampleLimit: 1000
labelLimit: 32
labelNameLengthLimit: 64
labelValueLengthLimit: 256
bodySizeLimit: 1MB
{{- end -}}

{{/* A pattern for the metrics of coordinators and learners (docs/metrics.md); it matches none of the operator's. */}}
{{- define "pliant.jobMetrics" -}}
pliant_(learner|train|checkpoint)_.+|pliant_coordinator_(connections|term|messages_total|refused_messages_total|refused_plans_total)
{{- end -}}
