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
